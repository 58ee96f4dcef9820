"""Data, names and archives that act: nothing of them is executed, nothing is written outside, and
what is wrong is said in one line.
"""

import contextlib
import html.parser
import io
import json
import os
import pickle
import re
import shlex
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split

from trust.common import (
    REPOSITORY,
    Case,
    Done,
    Skipped,
    Started,
    Wrong,
    lmtools,
    patience,
    refused,
    run,
    snapshot,
    sound,
    succeeded,
)
from trust.damage import recipe
from trust.world import everything, take, training, write_lists

CANARY = "canary"  # the file that a hostile command makes
RUN = f"touch {CANARY}"


@contextlib.contextmanager
def guarded(home: Path) -> Iterator[Path]:
    """A directory beside `home`; Wrong if anything runs or changes outside `home`."""
    outside = home.parent / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "kept").write_text("kept\n")
    (outside / "folder/kept").write_text("kept too\n")

    def names() -> set[str]:
        return {p.name for p in home.parent.iterdir() if not p.name.startswith(f"{home.name}.")}

    before = snapshot(outside), names()
    yield outside
    now = names()
    if found := [str(p) for p in home.parent.rglob(f"{CANARY}*")]:
        raise Wrong("executed", f"{found[0]} was made")
    if (snapshot(outside), now) != before:
        raise Wrong(
            "written outside",
            f"{sorted(now ^ before[1])}"
            f" {[n for n in before[0] if snapshot(outside).get(n) != before[0][n]]}",
        )


class Bomb:
    """What makes the canary when it is unpickled."""

    def __reduce__(self):
        return os.system, (RUN,)


# Kaldi directories


def kaldi_directory(home: Path) -> Path:
    """N-best archives of Kaldi's."""
    folder = home / "nbest"
    folder.mkdir()
    (folder / "words_text").write_text("u1-1 the king\nu1-2 a king\n")
    (folder / "acwt").write_text("u1-1 3.5\nu1-2 4\n")
    (folder / "lmwt.nolm").write_text("u1-1 1\nu1-2 2\n")
    return folder


def scp(name: str) -> Callable[[Path], None]:
    """One of the archives is a script file with a command."""

    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        value = "the king" if name == "words_text" else "3"
        (folder / f"{name}.scp").write_text(
            f"u1-1 {RUN}; echo {value} |\nu1-2 {RUN}; echo {value} |\n"
        )

    return make


def named(name: str) -> Callable[[Path], None]:
    """A file of that name, which says something to a shell."""

    def make(folder: Path) -> None:
        (folder / name).write_text("u1-1 3\nu1-2 4\n")

    return make


def linked(name: str) -> Callable[[Path], None]:
    """One of the archives is a script file that names `name`."""

    def make(folder: Path) -> None:
        (folder / "acwt").unlink()
        (folder / "acwt.scp").write_text(f"u1-1 {name}\nu1-2 {name}\n")

    return make


KALDI = {
    **{f"scp-{name}": scp(name) for name in ("acwt", "words_text", "lmwt.nolm")},
    "name-pipe": named(f"lmwt.x;{RUN};|"),
    "name-pipe-space": named(f"lmwt.x; {RUN} |"),
    "name-substitution": named(f"lmwt.$({RUN})|"),
    "name-backquotes": named(f"lmwt.`{RUN}`|"),
    "name-newline": named(f"lmwt.a\n{RUN}\n|"),
    "name-ark": named(f"ark:{RUN}|"),
    "name-suffix": named(f"lmwt.x;{RUN};|.scp"),
    "scp-ark": linked(f"ark:{RUN} |"),
    "scp-substitution": linked(f"$({RUN})"),
    "scp-stdin": linked("-"),
    "scp-dashes": linked("--help"),
}
READERS = {
    "convert": ("convert", "nbest", "out.jsonl"),
    "doctor": ("doctor", "--nbest", "nbest"),
    "score": ("score", "--lm", "lm/ngram", "--nbest", "nbest", "--cache", "none", "--out", "s"),
    "mbr": ("mbr", "--nbest", "nbest", "--out", "s"),
    "tune": ("tune", "--nbest", "nbest", "--out", "w"),
    "evaluate": ("evaluate", "--ref", "ref", "--hyp", "nbest"),
}


def kaldi(home: Path, name: str, verb: str) -> None:
    """A verb that recognises the directory by itself."""
    take(home, "lm/ngram")
    (home / "ref").write_text("u1 the king\n")
    KALDI[name](kaldi_directory(home))
    with guarded(home):
        done = run(*READERS[verb], home=home)
    if verb == "doctor":  # its findings are lines, its status 1 is one of them
        done.err = "" if done.status == 1 and "Traceback" not in done.err else done.err
        done.status = 0 if done.status == 1 else done.status
    sound(done)


def lattice_directory(home: Path, name: str) -> None:
    """A directory of lattices of which one has a hostile name."""
    take(home, "lattices")
    first = sorted((home / "lattices").iterdir())[0]
    first.rename(first.with_name(f"{NAMES[name]}.slf"))
    with guarded(home):
        for args in (
            ("lattice", "info", "lattices"),
            ("lattice", "nbest", "lattices", "--out", "o.jsonl"),
            ("convert", "lattices", "new", "--to", "slf"),
        ):
            sound(run(*args, home=home))


def list_directory(home: Path, form: str, name: str) -> None:
    """A directory with a file an utterance or a system, one of hostile name."""
    (home / "d").mkdir()
    for file in ("plain", NAMES[name]):
        (home / "d" / file).write_text(
            "-3.5 -1.5 2 the king\n-4 -1 2 a king\n" if form == "srilm" else "the king\na king\n"
        )
    with guarded(home):
        sound(run("convert", "d", "o.jsonl", "--format", form, home=home))
        sound(run("convert", "d", "o.jsonl", home=home))


# Recordings


def kaldi_recordings(**files: str) -> Callable[[Path], None]:
    """A Kaldi directory with these files; `_` stands for a dot."""

    def make(folder: Path) -> None:
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text, errors="surrogateescape")

    return make


SPEECH = {
    "command": kaldi_recordings(wav_scp=f"u1 {RUN} |\n"),
    "command-late": kaldi_recordings(wav_scp=f"u1 ok.wav\nu2 {RUN}; cat ok.wav |\n"),
    "command-segments": kaldi_recordings(wav_scp=f"r {RUN}|\n", segments="u1 r 0 1\n"),
    "ark": kaldi_recordings(wav_scp=f"u1 ark:{RUN} |\n"),
    "substitution": kaldi_recordings(wav_scp=f"u1 $({RUN})\n"),
    "stdin": kaldi_recordings(wav_scp="u1 -\n"),
    "device": kaldi_recordings(wav_scp="u1 /dev/zero\n"),
    "nul": kaldi_recordings(wav_scp="u1 ok.wav\0\n"),
    "bytes": kaldi_recordings(wav_scp="u1 \udcff.wav\n"),
    "long": kaldi_recordings(wav_scp=f"u1 {'x' * 70_000}\n"),
    "text": kaldi_recordings(wav_scp="u1 ok.wav\n", text="u1 \x1b]0;x\x07 \udcff\n"),
    "no-times": kaldi_recordings(wav_scp="r ok.wav\n", segments="u1 r 1e999 nan\n"),
    "name": lambda folder: (folder / f"x;{RUN};|.wav").write_text("x"),
    "name-escape": lambda folder: (folder / "\x1b[31mred.flac").write_text("x"),
    "link": lambda folder: (folder / "x.wav").symlink_to("/dev/zero"),
    "circle": lambda folder: (folder / "x").symlink_to("."),
    "pipe": lambda folder: os.mkfifo(folder / "x.wav"),
    "twins": lambda folder: [(folder / f"x y.{end}").write_text("x") for end in ("wav", "mp3")],
    "bytes-name": lambda folder: (folder / "\udcff.wav").write_text("x"),
    "playlist": lambda folder: (folder / "x.m4a").write_text("#EXTM3U\n#EXTINF:1,\n/etc/passwd\n"),
}


def speech(home: Path, name: str) -> None:
    """Recordings to decode, with all of a model but what is in its files."""
    (home / "d").mkdir()
    (home / "ok.wav").write_bytes(b"RIFF")
    SPEECH[name](home / "d")
    for file in ("am/final.mdl", "conf/mfcc.conf", "conf/model.conf"):
        (home / "m" / file).parent.mkdir(parents=True, exist_ok=True)
        (home / "m" / file).write_text("")
    with guarded(home):
        done = run("decode", "--asr", "vosk:m", "--audio", "d", "--out", "o.jsonl", home=home)
    if sound(done).status == 0:
        raise Wrong("accepted", "there was nothing to decode")


SCORE = "score --nbest test.jsonl --cache none --device cpu --out s --lm"
PIPES = {  # a file of what comes along -> a verb that reads it
    "lm/causal/model.safetensors": f"{SCORE} lm/causal",
    "lm/causal/subword/vocab.txt": f"{SCORE} lm/causal",
    "lm/ngram/config.yaml": f"{SCORE} lm/ngram",
    "lm/ngram/lm.arpa": f"{SCORE} lm/ngram",
    "words/normaliser.yaml": "corpus --text train.txt --subword words --out o",
    "train.bin": shlex.join(map(str, training("tta", "o"))),
    "d/segments": "decode --asr vosk:m --audio d --out o",
}


def piped(home: Path, file: str) -> None:
    """A named pipe, which nobody writes, in the place of a file."""
    everything(home)
    (home / "d").mkdir()
    (home / "d/wav.scp").write_text("u1 ok.wav\n")
    (home / file).unlink(missing_ok=True)
    os.mkfifo(home / file)
    refused(run(*split(PIPES[file]), home=home), f"{file}: is a pipe; give a file")


NAMES = {
    "pipe": f"x;{RUN};|",
    "substitution": f"$({RUN})",
    "backquotes": f"`{RUN}`",
    "newline": f"a\n{RUN}\nb",
    "quotes": f"'\"; {RUN}; '\"",
    "dashes": "--out",
    "ark": f"ark:{RUN} |",
    "escape": "\x1b]0;x\x07\x1b[31mred",
    "html": "<img src=x onerror=alert(1)>",
    "blank": " ",
    "surrogate": "\udcff",
}


# Names of files that are typed, but mean nothing else


def typed(home: Path, name: str) -> None:
    """A file of hostile name, given by its path as a verb's input and output."""
    take(home, "test.jsonl")
    file = f"./{NAMES[name]}.jsonl"
    (home / "test.jsonl").rename(home / file)
    with guarded(home):
        done = sound(run("convert", file, f"{file}.out.jsonl", home=home))
        if done.status == 0 and not os.path.exists(home / f"{file}.out.jsonl"):
            raise done.wrong("lost", "no output under the name given")
        sound(run("convert", file + ".missing", "out.jsonl", home=home))


# Ids and words


WORDS = {
    "html": "<script>alert(1)</script>",
    "attribute": "\"onmouseover='alert(1)'",
    "end": "</td></table></html><b>",
    "shell": f"$({RUN})",
    "backquotes": f"`{RUN}`",
    "semicolon": f"x;{RUN};",
    "escape": "\x1b[2J\x1b]0;title\x07",
    "right-to-left": "\u202egnp.exe",
    "up": "../../outside/x",
    "absolute": "/outside/x",
    "dots": "..",
    "null": "a\x00b",
    "dashes": "--out=x",
    "long": "x" * 5000,
    "markdown": "|`x`|[a](javascript:alert(1))",
    "json": '"},{"utt":"x"',
}
WRITERS = (
    "jsonl", "srilm", "kaldi-nbest", "espnet2", "systems", "trn", "ctm", "moses", "icefall",
)  # fmt: skip


def speaking(home: Path, where: str, name: str) -> None:
    """Lists with that word as id or in texts, through every writer and the report."""
    word = WORDS[name]
    utt, text = (word, "the king") if where == "id" else ("u1", f"the {word} king")
    hyps = [{"text": text, "scores": {"am": -1.0}}, {"text": "a king", "scores": {"am": -2.0}}]
    lists = [f"data/{part}/nbest.jsonl" for part in ("dev", "test")]
    for path in lists:
        (home / path).parent.mkdir(parents=True)
        write_lists([{"utt": u, "ref": text, "hyps": hyps} for u in (utt, "u2")], home / path)
    with guarded(home):

        def quietly(words: str) -> bool:
            return not quiet(sound(run(*split(words), home=home))).status

        for form in WRITERS:
            quietly(f"convert {lists[0]} out/{form} --to {form}")
        weights = "exp/tune/first-pass/weights.json"
        if not quietly(f"tune --nbest {lists[0]} --out {weights}"):
            return
        chosen = [
            quietly(
                f"rescore --nbest {path} --weights {weights} --out"
                f" exp/rescore/first-pass/{path.split('/')[1]}.txt"
            )
            for path in lists
        ]
        if chosen[-1]:
            quietly(f"report exp --nbest {' '.join(lists)}")
    page = home / "exp/report/index.html"
    if page.exists() and (found := Acting().of(page.read_text())):
        raise Wrong("executed", f"the page acts: {found[0]}")


class Acting(html.parser.HTMLParser):
    """What of a page would run the `alert` of the hostile words."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def of(self, page: str) -> list[str]:
        self.feed(page)
        return self.found

    def handle_starttag(self, tag, attrs):
        self.found += [
            f"{tag} {key}={value}"
            for key, value in attrs
            if "alert(" in (value or "") and (key[:2] == "on" or "script:" in value)
        ]

    def handle_data(self, data):
        if self.lasttag == "script" and data.strip() == "alert(1)":
            self.found.append(f"script {data}")


def quiet(done: Done) -> Done:
    """`done`, if it sends nothing to the terminal that a terminal obeys."""
    if found := re.search(
        r"[\x00-\x08\x0b-\x1f\x7f]", re.sub(r"\r(?=[^\n]*[|%])", "", done.err + done.out)
    ):
        raise done.wrong("executed", f"a control character reaches the terminal: {found[0]!r}")
    return done


# Configuration and models that are programs


YAML = {
    "apply": f"!!python/object/apply:os.system ['{RUN}']",
    "new": f"!!python/object/new:os.system ['{RUN}']",
    "module": "!!python/module:antigravity",
    "name": "!!python/name:os.system",
}

TUNE = split("tune --experiment e.yaml --nbest test.jsonl --scores {column} --out o/{system}")


def yaml(home: Path, tag: str, where: str) -> None:
    """A YAML file of the project's with a tag that makes Python objects."""
    take(home, "lm/tta", "lm/ngram", "test.jsonl", "train.bin", "valid.bin", "train.txt", "words")
    targets = {
        "model": ("lm/tta/config.yaml", score("lm/tta")),
        "ngram": ("lm/ngram/config.yaml", score("lm/ngram")),
        "normaliser": (
            "words/normaliser.yaml", split("corpus --text train.txt --subword words --out b"),
        ),
        "conf": (
            "own.yaml", split("train --conf own.yaml --train train.bin --valid valid.bin --out r"),
        ),
        "option": ("own.yaml", (*training("tta", "run"), f"arch.dim={YAML[tag]}")),
        "experiment": ("e.yaml", TUNE),
    }  # fmt: skip
    file, args = targets[where]
    old = (home / file).read_text() if (home / file).exists() else ""
    (home / file).write_text(f"extra: {YAML[tag]}\n{old}")
    if where == "option":
        (home / file).unlink()
    with guarded(home):
        sound(run(*args, home=home))


def score(lm: str) -> tuple:
    return ("score", "--lm", lm, *split("--nbest test.jsonl --cache none --device cpu --out s"))


PICKLES = (
    "weights weights-torch checkpoint corpus subword ngram-binary arpa vectors vectors-objects"
    " vectors-member lists vectors-npy"
)


def pickled(home: Path, where: str) -> None:
    """A pickle under the name of an artifact."""
    import numpy as np
    import torch

    take(home, "lm/tta", "test.jsonl", "train.bin", "valid.bin", "train.txt", "bpe", "pairs.tsv")
    take(home, "vectors.npz")
    vectors = ("sts", "--vectors", "vectors.npz", "--pairs", "pairs.tsv", "--out", "o")
    targets = {
        "weights": ("lm/tta/model.safetensors", score("lm/tta")),
        "weights-torch": ("lm/tta/model.safetensors", score("lm/tta")),
        "checkpoint": ("lm/tta/checkpoint.safetensors", training("tta", "lm/tta")),
        "corpus": ("train.bin", training("tta", "run")),
        "subword": ("bpe/subword.model", split("corpus --text train.txt --subword bpe --out b")),
        "ngram-binary": ("lm.bin", score("lm.bin")),
        "arpa": ("lm.arpa", score("lm.arpa")),
        "vectors": ("vectors.npz", vectors),
        "vectors-objects": ("vectors.npz", vectors),
        "vectors-member": ("vectors.npz", vectors),
        "lists": ("test.jsonl", ("convert", "test.jsonl", "o.jsonl")),
        "vectors-npy": ("x.npy", ("convert", "x.npy", "o.jsonl")),
    }
    file, args = targets[where]
    data = io.BytesIO()
    if where == "weights-torch":
        torch.save({"x": Bomb()}, data)
    elif where == "vectors-objects":
        texts = np.array([Bomb(), Bomb()], dtype=object)
        np.savez(data, **{**np.load(home / "vectors.npz"), "texts": texts})
    elif where == "vectors-member":
        with zipfile.ZipFile(data, "w") as archive:
            for name in ("vectors.npy", "texts.npy"):
                archive.writestr(name, pickle.dumps(Bomb()))
    elif where == "vectors-npy":
        np.save(data, np.array([Bomb()], dtype=object))
    else:
        data.write(pickle.dumps(Bomb()))
    (home / file).write_bytes(data.getvalue())
    with guarded(home):
        done = run(*args, home=home)
    sound(done)
    if done.status == 0 and where != "checkpoint":
        raise done.wrong("accepted")


CODE = f"import os\nos.system('{RUN}')\nclass Thing:\n    pass\n"


def huggingface(home: Path, where: str) -> None:
    """A Hugging Face directory with pickled weights, or with code of its own."""
    try:
        import torch
        from transformers import BertConfig, BertForMaskedLM
    except ImportError:
        raise Skipped("transformers is not installed") from None
    folder = home / "hf"
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    sizes |= {"vocab_size": 30, "intermediate_size": 8, "max_position_embeddings": 16}
    model = BertForMaskedLM(BertConfig(**sizes))
    model.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += split("the a king queen city went came to of and great river stone house")
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    tokenizer = {"tokenizer_class": "BertTokenizer", "model_max_length": 16}
    take(home, "test.jsonl")
    if where.startswith("pickle"):
        (folder / "model.safetensors").unlink()
        if where == "pickle":
            (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Bomb()}))
        elif where == "pickle-torch":
            torch.save({"x": Bomb()}, folder / "pytorch_model.bin")
        else:  # sound pickled weights: only an explicit wish loads a pickle
            torch.save(model.state_dict(), folder / "pytorch_model.bin")
    elif where.startswith("code"):
        (folder / "hostile.py").write_text(CODE)
        tree = json.loads((folder / "config.json").read_text())
        things = {"AutoTokenizer": ["hostile.Thing", "hostile.Thing"]}
        models = dict.fromkeys(("AutoConfig", "AutoModelForMaskedLM"), "hostile.Thing")
        tree["auto_map"] = things | models
        if where == "code-unknown":
            tree["model_type"] = "hostile"
        (folder / "config.json").write_text(json.dumps(tree))
        if where == "code-tokenizer":
            tokenizer |= {"tokenizer_class": "Thing", "auto_map": things}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    with guarded(home):
        done = run(*score("hf:hf"), home=home, HF_HOME=str(home / "hfhome"))
    (succeeded if where == "sound" else sound)(done)
    if done.status == 0 and where.startswith("pickle"):
        raise done.wrong("accepted", "pickled weights are loaded without being asked for")


# Archives that are unpacked


MEMBERS = {
    "up": "../outside/written", "far-up": "../../outside/written",
    "absolute": "/tmp/lmtools-trust-canary", "dots": "..", "dot": ".",
    "inside-up": "dev/../../../outside/written", "link": "link", "hard-link": "hard",
    "device": "device", "through-link": "link/written", "newline": "a\nb.slf", "empty": "",
}  # fmt: skip


def archive(home: Path, name: str) -> None:
    """The lattices of a mini corpus with a member of hostile name or kind, or cut off."""
    (home / "mini").mkdir()
    for file in ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl"):
        (home / "mini" / file).write_text("x\n")
    with guarded(home) as outside:
        for part in ("dev", "test"):
            with tarfile.open(home / f"mini/{part}.lattices.tar.xz", "w:xz") as packed:
                for member in members(name, outside):
                    packed.addfile(member, io.BytesIO(b"x" * member.size))
        if name == "truncated":
            whole = (home / "mini/dev.lattices.tar.xz").read_bytes()
            (home / "mini/dev.lattices.tar.xz").write_bytes(whole[: len(whole) // 2])
        archives = ("dev.lattices.tar.xz", "test.lattices.tar.xz")
        script = REPOSITORY / "utils/unpack.py"
        command = [sys.executable, script, "mini", "out", "train.txt", *archives]
        done = Started(command, home).done()
        if Path("/tmp/lmtools-trust-canary").exists():
            os.unlink("/tmp/lmtools-trust-canary")
            raise Wrong("written outside", "/tmp/lmtools-trust-canary")
    sound(done)
    if name == "truncated" and done.status == 0:
        raise done.wrong("accepted")
    if links := [str(p) for p in (home / "out").rglob("*") if p.is_symlink()]:
        raise Wrong("written outside", f"links were unpacked: {links}")


def members(name: str, outside: Path) -> Iterator[tarfile.TarInfo]:
    """A good member and the hostile one."""
    good = tarfile.TarInfo("good.slf")
    good.size = 5
    yield good
    if name == "truncated":
        for number in range(50):
            member = tarfile.TarInfo(f"m{number}")
            member.size = 2000
            yield member
        return
    if name in ("link", "through-link", "hard-link"):
        link = tarfile.TarInfo("link")
        link.type = tarfile.LNKTYPE if name == "hard-link" else tarfile.SYMTYPE
        link.linkname = str(outside / ("kept" if name == "hard-link" else "folder"))
        yield link
    if name == "device":
        device = tarfile.TarInfo("device")
        device.type = tarfile.FIFOTYPE
        yield device
    if name not in ("link", "hard-link", "device"):
        member = tarfile.TarInfo(MEMBERS[name])
        member.size = 3
        yield member


# Links at predictable names


def predictable(home: Path) -> None:
    """No name that a recipe uses is written through a link: each file replaced by one."""
    start = recipe(home)
    start()
    names = [str(p.relative_to(home)) for p in (home / "exp/stages").iterdir()]
    with guarded(home) as outside:
        for name in names:
            (home / name).unlink()
            (home / name).symlink_to(outside / "kept")
        done = start()
    if "Traceback" in done.err:
        raise done.wrong("traceback")


def leftovers(home: Path) -> None:
    """Links named as killed writers' files: who sweeps leaves what they point to."""
    take(home, "test.jsonl")
    with guarded(home) as outside:
        (home / ".out.jsonl.abc.tmp.jsonl").symlink_to(outside / "kept")
        (home / ".out.jsonl.abc.tmp").symlink_to(outside / "folder")
        (home / ".words.abc.tmp").symlink_to(outside / "folder")
        (home / ".words.abc.tmp.old").symlink_to(outside / "folder")
        take(home, "train.txt")
        succeeded(run("convert", "test.jsonl", "out.jsonl", home=home))
        for _ in range(2):
            words = split("subword --text train.txt --type word --out words")
            succeeded(run(*words, home=home))


def options(home: Path, name: str) -> None:
    """Options of a recipe that say something to a shell."""
    value = NAMES[name]
    start = recipe(home)
    with guarded(home):
        for args in (
            ("--expdir", value),
            (f"--expdir={value}", "--skip-done", "true"),
            ("--stage", value),
            (f"--{value}", "x"),
        ):
            done = start(*args)
            if "Traceback" in done.err:
                raise done.wrong("traceback")


def traced(home: Path) -> None:
    """A hostile directory seen from the kernel: nothing starts or is written outside."""
    if not shutil.which("strace"):
        raise Skipped("no strace")
    folder = kaldi_directory(home)
    scp("acwt")(folder)
    log = home.parent / "case.trace"
    calls = "execve,execveat,openat,open,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir"
    calls += ",mkdirat,symlink,link,linkat"
    command = ["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", log]
    with guarded(home):
        Started([*command, *lmtools("convert", "nbest", "out.jsonl")], home).done(patience(300))
    lines = log.read_text(errors="replace").splitlines()
    if len(lines) < 10:
        raise Skipped("strace is not allowed here")
    started = [line for line in lines if "execve" in line and "= 0" in line][1:]
    if started:
        raise Wrong("executed", started[0][:300])
    for line in lines:
        path = re.search(r'"([^"]*)"', line)
        opens = re.search(r"\b(open|openat|execve)\(", line)
        writes = not opens or re.search(r"O_WRONLY|O_RDWR|O_CREAT", line)
        places = (str(home), "/dev/", "/proc/", "/tmp/")
        far = path and path[1].startswith("/") and not path[1].startswith(places)
        if far and writes and "= -1" not in line:
            raise Wrong("written outside", line[:300])


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each kind, all of its forms but in the short campaign."""
    kinds = {
        "kaldi": (kaldi, KALDI, READERS),
        "lattices": (lattice_directory, NAMES),
        "lists": (list_directory, ("srilm", "systems"), NAMES),
        "typed": (typed, NAMES),
        "options": (options, NAMES),
        "speech": (speech, SPEECH),
        "piped": (piped, PIPES),
        "speaking": (speaking, ("id", "word"), WORDS),
        "yaml": (yaml, YAML, split("model ngram normaliser conf option experiment")),
        "pickle": (pickled, split(PICKLES)),
        "huggingface": (
            huggingface,
            split("sound pickle pickle-torch pickle-sound code code-unknown code-tokenizer"),
        ),
        "archive": (archive, (*MEMBERS, "truncated")),
        "link-all": (predictable,),
        "leftovers": (leftovers,),
        "traced": (traced,),
    }
    return Case.all(kinds, size, SHORT)


SHORT = {
    *(f"kaldi-{name}-{verb}" for name in ("scp-acwt", "name-pipe") for verb in [*READERS][:3]),
    *split("kaldi-name-newline-convert lattices-newline lists-srilm-pipe typed-newline"),
    *split("options-substitution speech-command speech-name speech-pipe speaking-id-html"),
    *split("speaking-id-up speaking-word-escape yaml-apply-model yaml-apply-conf"),
    *split("yaml-apply-experiment pickle-weights-torch pickle-vectors-objects"),
    *split("pickle-checkpoint archive-up archive-dots archive-truncated link-all"),
    *split("leftovers"),
}
