"""What comes along with data to be taken for lmtools' own: parts, journals, caches, shards, links
and modules. None of it runs, none changes a result or is written through.
"""

import contextlib
import functools
import importlib
import pickle
import shutil
import sys
import tempfile
import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from trust.common import REPOSITORY, Case, Done, Skipped, Wrong, run, snapshot, sound, succeeded
from trust.damage import experiment
from trust.hostile import RUN, Bomb, guarded
from trust.world import World, take, training

MODULES = ("multiprocessing", "runpy", "lmtools", "numpy", "json", "torch", "sitecustomize")


@dataclass(frozen=True)
class Verb:
    """A verb that takes --nj: what is copied, its words, and the files that it writes."""

    needs: tuple[str, ...]
    words: str
    outputs: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda home: None


def systems(home: Path) -> None:
    (home / "e.yaml").write_text(
        "columns: {tta: {}, ngram: {}}\nsystems: {first: [], tta: [tta], ngram: [ngram]}\n"
    )


def recordings(home: Path, count: int = 4) -> None:
    """Recordings for a recogniser that needs no model."""
    try:
        importlib.import_module("soundfile")
    except ImportError:
        raise Skipped("soundfile is not installed") from None
    importlib.import_module("fake_recogniser").install()
    for n in range(count):
        (home / "set").mkdir(exist_ok=True)
        with wave.open(str(home / f"set/u{n}.wav"), "wb") as out:
            out.setparams((1, 2, 16000, 0, "NONE", ""))
            out.writeframes(bytes(range(200)) * (n + 1))
    (home / "m").mkdir()
    (home / "m/model").write_text("word\n")


RUN_SH = str(REPOSITORY / "utils/run.sh")
WHERE = {"local": "local", "parts": RUN_SH}
PARTED = ("corpus", "shards", "score")  # verbs that take --cmd (and decode)
TEXTS = ("train.txt", "valid.txt", "words")
VERBS = {
    "corpus": Verb(TEXTS, "corpus --text train.txt valid.txt --subword words --out o", ("o",)),
    "shards": Verb(
        TEXTS,
        "corpus --text train.txt valid.txt --subword words --shard-size 1M --out o",
        ("o", "o.shards"),
    ),
    "subword": Verb(TEXTS, "subword --text train.txt valid.txt --type word --out o", ("o",)),
    "score": Verb(
        ("lm/tta", "test.jsonl"),
        "score --lm lm/tta --nbest test.jsonl --rows 2 --cache none --device cpu --out o",
        ("o",),
    ),
    "ppl": Verb(
        ("lm/tta", "valid.txt"),
        "ppl --lm lm/tta --text valid.txt --rows 2 --cache none --device cpu --out o",
        ("o",),
    ),
    "tune": Verb(
        ("dev.jsonl", "dev.tta.scores", "dev.ngram.scores"),
        "tune --nbest dev.jsonl --experiment e.yaml --scores dev.{column}.scores"
        " --out o/{system}.json",
        ("o",),
        systems,
    ),
    "rescore": Verb(
        ("test.jsonl", "test.ngram.scores", "weights.json", "lm/tta"),
        "rescore --nbest test.jsonl --scores ng=test.ngram.scores --lm tta=lm/tta --rows 2"
        " --weights weights.json --cache none --device cpu --out o",
        ("o",),
    ),
    "lattice": Verb(
        ("lm/causal", "lattices"),
        "lattice rescore lattices --lm c=lm/causal --weights am=1,lm=1,c=1 --device cpu"
        " --nbest-out o",
        ("o",),
    ),
    "decode": Verb((), "decode --asr fake:m --audio set --out o", ("o",), recordings),
}


def ready(home: Path, name: str) -> None:
    take(home, *VERBS[name].needs)
    VERBS[name].prepare(home)


def start(home: Path, name: str, where: str = "local", nj: int = 2) -> Done:
    """The verb by processes, or by a program of --cmd."""
    how = ("--nj", nj, *(("--cmd", where) if where != "local" else ()))
    paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}"  # of the fake recogniser
    return run(*split(VERBS[name].words), *how, home=home, PYTHONPATH=paths)


def left(home: Path, name: str) -> dict[str, bytes]:
    found = {}
    for output in VERBS[name].outputs:
        path = home / output
        found |= {output: path.read_bytes()} if path.is_file() else snapshot(path)
    return found


@functools.cache
def expected(name: str) -> dict[str, bytes]:
    """What it writes where nothing is planted, in parts as whole."""
    found = []
    for where in ("local", RUN_SH)[: 1 + (name in PARTED)]:
        home = Path(tempfile.mkdtemp(dir=World.base), "case")
        home.mkdir()
        ready(home, name)
        succeeded(start(home, name, where=where))
        found.append(left(home, name))
    if found[0] != found[-1]:
        raise Wrong("silent change", f"{name}: parts and the whole differ")
    return found[0]


def right(home: Path, name: str, done: Done) -> None:
    """Wrong unless the verb refused in one line, or wrote what it should."""
    if sound(done).status == 0 and left(home, name) != expected(name):
        raise done.wrong("silent change")


# Parts


def make_parts(home: Path, name: str) -> list[Path]:
    """Parts of a verb's output, which are not joined yet."""
    ready(home, name)
    for number in (1, 2):
        words = *split(VERBS[name].words), "--shard", f"{number}/2"
        succeeded(run(*words, home=home, PYTHONPATH=f"{REPOSITORY}:{REPOSITORY / 'tests'}"))
    return [home / f"o.{number}-of-2" for number in (1, 2)]


def swapped(parts: list[Path]) -> None:
    shutil.rmtree(parts[1])
    shutil.copytree(parts[0], parts[1])


def told(parts: list[Path]) -> None:
    """A description that names files elsewhere, and a program."""
    from lmtools.base.seal import read_json, write_json

    tree = read_json(parts[0] / "part.json")
    tree["files"] = {"../../outside/kept": "0" * 64, **tree["files"]}
    tree["facts"] = {"words": ["ngram", "--text", "x", "--order", "2", "--kenlm", "."]}
    write_json({**tree, "verb": "ngram"}, parts[0] / "part.json")


def written(name: str) -> Callable[[list[Path]], None]:
    """A pickle in the place of a file of both parts."""

    def plant(parts: list[Path]) -> None:
        for part in parts:
            (part / name).write_bytes(pickle.dumps(Bomb()))

    return plant


def linked(parts: list[Path]) -> None:
    shutil.rmtree(parts[0])
    parts[0].symlink_to(parts[0].parents[1] / "outside/folder")


PLANTS = {
    "swapped": swapped,
    "told": told,
    "output": written("out"),
    "description": written("part.json"),
    "linked": linked,
    "lost": lambda parts: (parts[1] / "part.json").unlink(),
}


def joined(home: Path, name: str, plant: str) -> None:
    """Parts with a planted one are refused, unless foreign; they can be made good."""
    parts = make_parts(home, name)
    with guarded(home):
        PLANTS[plant](parts)
        done = sound(run("merge", "o", home=home))
        if (home / "o").exists() != (done.status == 0):
            raise done.wrong("accepted")
        right(home, name, start(home, name, where=RUN_SH) if done.status else done)


# What else lies beside data


def journal(home: Path, how: str) -> None:
    """A journal of `decode` that is a pickle, or of other audio."""
    ready(home, "decode")
    from lmtools import NBest
    from lmtools.decode.recognisers import make_recogniser, sign_recogniser
    from lmtools.decode.utterances import find_utterances, identify_audio
    from lmtools.formats.jsonl import Journal, JournalEntry

    audio, _ = identify_audio(find_utterances(home / "set", None))
    planted = Journal(
        home / "o", sign_recogniser("fake:m", make_recogniser(f"fake:{home / 'm'}", (), "cpu"))
    )
    if how == "bomb":
        planted.path.write_bytes(pickle.dumps(Bomb()) + b"\n")
    else:
        notes = {"seconds": 1.0, "spent": 1.0}
        with planted.appending() as add:
            for utt, mark in audio.items():
                add(JournalEntry(NBest.of(utt, ["planted"]), {**notes, "audio": mark[::-1]}))
    kept = planted.path.read_bytes()
    with guarded(home):
        done = succeeded(start(home, "decode"))
        right(home, "decode", done)
    if not kept:
        raise Wrong("lost", "nothing was planted")


def cache(home: Path) -> None:
    ready(home, "score")
    words = VERBS["score"].words.replace("--cache none", "--cache kept")
    succeeded(run(*split(words), home=home))
    for number, path in enumerate(sorted((home / "kept").rglob("*.segment"))):
        path.write_bytes(pickle.dumps(Bomb()))
        (path.with_name(f"{number:032x}.segment")).symlink_to(home.parent / "outside/kept")
    with guarded(home):
        done = succeeded(run(*split(words), home=home))
        right(home, "score", done)


def shards(home: Path, where: str) -> None:
    """Links and pickles where a corpus in shards belongs."""
    where = WHERE[where]
    ready(home, "shards")
    with guarded(home) as outside:
        (home / "o").write_bytes(b"lmtools-corpus-index-1\n" + pickle.dumps(Bomb()))
        (home / "o.shards").mkdir()
        for n in range(2):
            (home / f"o.shards/{n}.part").symlink_to(outside / "kept")
            (home / f"o.shards/{n:032x}.bin").write_bytes(pickle.dumps(Bomb()))
        right(home, "shards", succeeded(start(home, "shards", where=where)))
        shutil.rmtree(home / "o.shards")
        (home / "o.shards").symlink_to(outside / "folder")
        right(home, "shards", start(home, "shards", where=where))


def modules(home: Path, name: str, where: str) -> None:
    """Python modules beside the data, of names that whatever starts would import."""
    where = WHERE[where]
    if sys.version_info < (3, 11):
        raise Skipped("Python 3.10 always takes them")
    ready(home, name)
    for module in MODULES:
        (home / f"{module}.py").write_text(f"import os\nos.system('{RUN}-{module}')\n")
    with guarded(home):
        right(home, name, succeeded(start(home, name, where=where)))


# Links in outputs


OUTPUTS = {
    "train": (("train.bin", "valid.bin"), training("tta", "run"), "run"),
    "ngram": (("train.txt",), ("ngram", "--text", "train.txt", "--order", 2, "--out", "g"), "g"),
    "subword": (TEXTS, tuple(split("subword --text train.txt --type word --out v")), "v"),
    "report": ((), (*split("report exp --nbest data/dev/nbest.jsonl"),), "exp/report"),
}


def links(home: Path, name: str) -> None:
    """A link out of it in the place of each file of a directory that a verb writes into."""
    needs, words, folder = OUTPUTS[name]
    take(home, *needs)
    if name == "report":
        shutil.copytree(experiment(), home, dirs_exist_ok=True)
    succeeded(run(*words, home=home))
    names = [path.relative_to(home) for path in (home / folder).rglob("*") if path.is_file()]
    names.append(Path(folder, "set_aside.txt"))
    for keep in (False, True):  # with the content in place a training is complete
        with contextlib.ExitStack() as stack:
            shutil.rmtree(home.parent / "outside", ignore_errors=True)
            outside = stack.enter_context(guarded(home))
            for file in names:
                (home / file).unlink(missing_ok=True)
                (home / file).symlink_to(outside / ("new" if keep else "kept"))
            sound(run(*words, home=home))


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each verb with --cmd with each plant, each with --nj among modules; or some."""
    kinds = {
        "parts": (joined, PARTED, PLANTS),
        "modules": (modules, VERBS, WHERE),
        "journal": (journal, ("bomb", "audio")),
        "cache": (cache,),
        "shards": (shards, WHERE),
        "links": (links, OUTPUTS),
    }
    whole = {f"modules-{name}-parts" for name in VERBS.keys() - {*PARTED}}
    yield from (case for case in Case.all(kinds, size, SHORT) if case.name not in whole)


SHORT = {
    *(f"parts-corpus-{plant}" for plant in PLANTS),
    *("parts-score-told", "modules-subword-local", "modules-corpus-parts", "journal-bomb"),
    *("cache", "shards-local", "links-train", "links-subword"),
}
