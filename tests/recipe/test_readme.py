"""The commands of README.md and of docs/, run as they stand there, print what the pages show.

The blocks of a page in `bash` and `python` run in their order in one directory, which has egs/,
utils/ and conf/ of the checkout. What a page says that its reader has is made here (`page`). If a
`text` block follows, its lines are printed in this order; of a line that ends in ` ...` the page
shows the beginning, and `...` stands for any lines. Blocks in `sh` and `py` are not run: a comment
before each says why.
"""

import json
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

import lmtools
from lmtools import Hypothesis
from lmtools.base import doors
from lmtools.cli import main
from lmtools.formats import FORMATS, edits, jsonl, kaldi_text
from lmtools.formats.lattices import LATTICES
from lmtools.text.corpus import Corpus

ROOT = Path(__file__).parents[2]
MINI = ROOT / "egs/librispeech/mini"
SIZES = {"dev": 60, "test": 60}
BLOCK = re.compile(
    r"(?:^<!-- not run: ([^>]+) -->\n\n?)?^```(bash|python|sh|py)\n(.*?)^```\n"
    r"(?:\n?```text\n(.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


@cache
def read_blocks(name: str) -> list[tuple[str, str, str, str]]:
    """Of each block: why it is not run, the language, the code, what it prints."""
    return BLOCK.findall((ROOT / name).read_text())


NAMES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
RUN = [name for name in NAMES if {"bash", "python"} & {block[1] for block in read_blocks(name)}]
PAGES: dict[str, Callable[[Path], Iterator]] = {}


def page(name: str):
    """Register what makes a page's files, yields, gets what the blocks print, and checks it."""
    return lambda make: PAGES.setdefault(name, make)


@pytest.mark.parametrize("name", NAMES)
def test_a_block_runs_or_a_comment_says_why_not(name):
    text = (ROOT / name).read_text()
    assert len(read_blocks(name)) == len(re.findall(r"^```(?:bash|python|sh|py)$", text, re.M))
    for why, language, code, _ in read_blocks(name):
        assert bool(why) == (language in ("sh", "py")), code


def test_every_page_that_has_files_is_there():
    assert PAGES.keys() <= set(RUN)


def run_block(language: str, code: str, home: Path, env: dict, before: str) -> str:
    """Run a block in `home`; what it prints. Shell variables are kept in `env`."""
    if language == "python":
        program = "import contextlib\nwith contextlib.redirect_stdout(None):\n"
        command = [sys.executable, "-c", f"{program} exec({before!r})\n{code}"]
    else:
        begin = f"exec 2>&1\nset -a\ntrap 'env -0 > \"{home}/.variables\"' EXIT\n"
        command = ["bash", "-eu", "-c", begin + code]
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    if language == "bash":
        kept = (home / ".variables").read_text().rstrip("\0").split("\0")
        env.update(one.split("=", 1) for one in kept)
    return done.stdout


def check_output(shown: str, printed: str) -> None:
    """Find each line that the page shows among the printed ones, in this order."""
    lines = iter(printed.splitlines())
    for line in shown.splitlines():
        begin, cut, _ = line.partition(" ...")
        if line != "...":
            assert any(one.startswith(begin) if cut else one == line for one in lines), (
                f"{line}\n{printed}"
            )


@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_page(name, tmp_path, shell):
    making = PAGES.get(name, make_nothing)(tmp_path)
    next(making)
    for folder in ("egs", "utils", "conf"):
        if not (tmp_path / folder).exists():
            (tmp_path / folder).symlink_to(ROOT / folder)
    path = f"{shell['PATH']}:{Path(sys.executable).parent}"
    env = {**shell, "PATH": path, "LMTOOLS_CACHE": "none", "LM": "lm"}
    said, before = "", ""
    for _, language, code, shown in read_blocks(name):
        if language in ("bash", "python"):
            printed = run_block(language, code, tmp_path, env, before)
            check_output(shown, printed)
            said += printed
            before += code if language == "python" else ""
    with pytest.raises(StopIteration):
        making.send(said)


def make_nothing(home: Path) -> Iterator:
    """Have no files and no checks of their own."""
    yield


@pytest.fixture(scope="module", autouse=True)
def lm(tmp_path_factory):
    """Estimate an n-gram of the mini corpus's text, for `copy_lm`."""
    out = tmp_path_factory.mktemp("lm") / "ngram"
    command = f"ngram --text {MINI}/train.txt.xz --order 3 --normaliser librispeech --out {out}"
    assert main(command.split()) == 0
    LM.append(out)


LM: list[Path] = []


def copy_lm(home: Path) -> None:
    shutil.copytree(LM[-1], home / "lm")


def mini(name: str) -> list:
    """The first lists of a set, twenty hypotheses each."""
    nbests = islice(jsonl.read(MINI / f"{name}.nbest.jsonl.xz"), SIZES[name])
    return [edits.cut_list(nbest, 20) for nbest in nbests]


def references(home: Path) -> None:
    """data/SET/text, as all toolkits with utterance ids have it."""
    for name in SIZES:
        (home / "data" / name).mkdir(parents=True)
        kaldi_text.write({nbest.utt: nbest.ref for nbest in mini(name)}, home / f"data/{name}/text")


def own_lists(home: Path) -> None:
    """Lists in our form, and the mini corpus's text."""
    for name in SIZES:
        jsonl.write(mini(name), home / f"{name}.jsonl")
    for name in ("train", "valid"):
        text = lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode()
        (home / f"{name}.txt").write_text(text)


def in_upper_case(lattice):
    return replace(lattice, words=tuple(word and word.upper() for word in lattice.words))


def lattices(home: Path, name: str, count: int = SIZES["dev"], folder: str = "lattices") -> list:
    """The lattices of the first utterances that `mini` has lists of, as SLF."""
    out = home / folder / name
    out.mkdir(parents=True)
    wanted = {f"{nbest.utt}.slf" for nbest in sorted(mini(name), key=lambda one: one.utt)[:count]}
    with tarfile.open(MINI / f"{name}.lattices.tar.xz") as packed:
        for member in packed:
            if Path(member.name).name in wanted:
                (out / Path(member.name).name).write_bytes(packed.extractfile(member).read())
    return LATTICES.read(out, "slf")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def rate(ref: dict[str, str], hyp: dict[str, str]) -> float:
    return lmtools.wer([ref[utt] for utt in ref], [hyp.get(utt, "") for utt in ref]).score


def improved(home: Path, text: str = "test.txt") -> bool:
    """Whether the text that the commands wrote has a lower WER than the first hypotheses."""
    chosen = kaldi_text.read(home / text)
    own = [nbest for nbest in mini("test") if nbest.utt in chosen]
    refs = {nbest.utt: nbest.ref for nbest in own}
    return rate(refs, chosen) < rate(refs, {nbest.utt: nbest.hyps[0].text for nbest in own})


@page("docs/kaldi.md")
def kaldi(home):
    """Lattices in Kaldi's format and pocketsphinx's; alternatives of Vosk."""
    both = {name: lattices(home, name, 40) for name in SIZES}
    upper = {name: [in_upper_case(one) for one in some] for name, some in both.items()}
    words = {word for some in upper.values() for one in some for word in one.words if word}
    ids = home / "data/lang/words.txt"
    ids.parent.mkdir(parents=True)
    lines = (f"{word} {number}\n" for number, word in enumerate(["<eps>", *sorted(words)]))
    write(ids, "".join(lines))
    for name, some in upper.items():
        (home / f"exp/chain/decode_{name}").mkdir(parents=True)
        LATTICES.write(some, home / f"exp/chain/decode_{name}/lat.1.gz", f"kaldi:words={ids}")
        found = [
            {
                "utt": nbest.utt,
                "alternatives": [
                    {"confidence": hyp.scores["am"] / 20 + hyp.scores["lm"], "text": f" {hyp.text}"}
                    for hyp in nbest.hyps
                ],
            }
            for nbest in mini(name)
        ]
        write(home / f"vosk-{name}.json", "".join(f"{json.dumps(one)}\n" for one in found))
    yield
    rewritten = LATTICES.read(home / "lat.1.gz", f"kaldi:words={ids}")
    assert [lattice.utt for lattice in rewritten] == [lattice.utt for lattice in upper["test"]]
    assert improved(home, "lattice-test.txt")
    assert kaldi_text.read(home / "test.txt").keys() == {lattice.utt for lattice in both["test"]}


@page("docs/espnet.md")
def espnet(home):
    """Decode directories of ESPnet and beams of pyctcdecode."""
    references(home)
    own_lists(home)
    for name in SIZES:
        totals = [
            replace(
                nbest,
                ref=None,
                hyps=tuple(
                    replace(hyp, scores={"am": hyp.scores["am"] / 20 + hyp.scores["lm"]})
                    for hyp in nbest.hyps
                ),
            )
            for nbest in mini(name)
        ]
        (home / "exp/asr/decode").mkdir(parents=True, exist_ok=True)
        FORMATS.write(totals, home / f"exp/asr/decode/{name}", "espnet2")
        (home / f"{name}.jsonl").unlink()
    yield
    assert improved(home, "new/test.txt")


def tokenised(text: str) -> str:
    """The text as Moses's tokeniser and its translations have it."""
    return re.sub(r"(?<=\w)'(?=\w)", " &apos;", text)


@page("docs/translation.md")
def translation(home):
    own_lists(home)
    for name in SIZES:
        nbests = []
        for number, nbest in enumerate(mini(name)):
            scores = [{"LM0": hyp.scores["lm"], "TM0": hyp.scores["am"]} for hyp in nbest.hyps]
            scores = [{**one, "am": one["LM0"] + one["TM0"] / 20} for one in scores]
            hyps = [
                Hypothesis(tokenised(hyp.text), one)
                for hyp, one in zip(nbest.hyps, scores, strict=True)
            ]
            nbests.append(replace(nbest, utt=str(number), hyps=tuple(hyps), ref=None))
        (home / f"{name}.jsonl").unlink()
        FORMATS.write(nbests, home / f"{name}.nbest", "moses")
        write(home / f"{name}.reference.txt", "".join(f"{nbest.ref}\n" for nbest in mini(name)))
    said = yield
    after, before = (float(one) for one in re.findall(r"BLEU ([\d.]+)", said)[-2:])
    assert after > before
    best = [
        nbest.hyps[0].text.split() for nbest in FORMATS.read(home / "test.rescored.nbest", "moses")
    ]
    assert best == [text.split() for text in kaldi_text.read(home / "test.txt").values()]


def test_pocketsphinx_writes_the_lattices(tmp_path):
    """The page's program decodes synthetic speech."""
    if not shutil.which("flite"):
        pytest.skip("flite is not installed, so there is nothing to decode")
    pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    (program,) = [code for *_, code, _ in read_blocks("docs/kaldi.md") if "import Decoder" in code]
    (tmp_path / "lattices").mkdir()
    wav, spoken = tmp_path / "u1.wav", mini("test")[0].ref.lower()
    subprocess.run(["flite", "-voice", "slt", "-t", spoken, "-o", str(wav)], check=True)
    command = [sys.executable, "-c", program, f"{tmp_path}/lattices", str(wav)]
    subprocess.run(command, check=True, capture_output=True)
    (lattice,) = LATTICES.read(tmp_path / "lattices", "slf")
    (best,) = lmtools.lattice.nbest(lattice, {"am": 1.0}, 1)
    assert rate({"u1": spoken}, {"u1": " ".join(best.words)}) < 80


@page("docs/whisper.md")
def whisper(home):
    """Lists as a program of CTranslate2 writes them; dev and test have Whisper's own writing."""
    references(home)
    for name in SIZES:
        tree, own = [], []
        for nbest in mini(name):
            totals = [hyp.scores["am"] / 20 + hyp.scores["lm"] for hyp in nbest.hyps]
            lengths = [len(hyp.text.split()) for hyp in nbest.hyps]
            rows = zip(nbest.hyps, totals, lengths, strict=True)
            hyps = [{"text": h.text, "score": t / n, "tokens": n} for h, t, n in rows]
            tree.append({"utt": nbest.utt, "hypotheses": hyps})
            hyps = [
                replace(h, text=h.text.lower(), written=f"{h.text.capitalize()}.")
                for h in nbest.hyps
            ]
            own.append(replace(nbest, ref=nbest.ref.lower(), hyps=tuple(hyps)))
        write(home / f"whisper-{name}.json", json.dumps(tree))
        jsonl.write(own, home / f"{name}.jsonl")
    yield
    assert len(next(jsonl.read(home / "dev.lists.jsonl")).hyps) > 1
    plain, written = (kaldi_text.read(home / f"test.txt{end}") for end in ("", ".written"))
    assert plain == {utt: text.lower()[:-1] for utt, text in written.items()}


@page("docs/python.md")
def python(home):
    """The 4-gram of the quick start."""
    text = ROOT / "egs/librispeech/mini-real/train.txt.xz"
    assert main(f"ngram --text {text} --order 4 --out {home}/lm".split()) == 0
    yield
    assert (home / "dev.best.jsonl").exists()


@page("docs/rescoring.md")
def rescoring(home):
    references(home)
    lattices(home, "dev", 5)
    said = yield
    assert all(word in said for word in ("oracle WER", "MAPSSWE", "arcs"))
    best = {one.utt: one.hyps[0].text for one in jsonl.read(home / "test.new.jsonl")}
    assert best == kaldi_text.read(home / "test.txt")
    assert kaldi_text.read(home / "dev.txt").keys() == {
        one.utt for one in jsonl.read(home / "dev.jsonl")
    }


@page("docs/advanced.md")
def advanced(home):
    own_lists(home)
    copy_lm(home)
    write(home / "transcripts.txt", "".join(f"{one.ref.lower()}\n" for one in mini("dev")))
    yield
    assert improved(home, "test.ratio.txt")


@page("docs/clusters.md")
def clusters(home):
    own_lists(home)
    copy_lm(home)
    yield
    command = f"score --nbest {home}/test.jsonl --lm {home}/lm --out {home}/one.scores"
    assert main(command.split()) == 0
    assert (home / "one.scores").read_text() == (home / "test.scores").read_text()
    assert len(Corpus.open(home / "train.words.bin").shards) == 1


@page("docs/evaluation.md")
def evaluation(home):
    references(home)
    shutil.copy(home / "data/test/text", home / "test.hyp.txt")
    (home / "test.stm").write_text("r 1 ann 0.0 2.0 <o,f> yes\n")
    (home / "test.ctm").write_text("r 1 0.1 0.2 yes\n")
    said = yield
    assert said.count("WER 0.00%") == 3


@page("docs/phrases.md")
def phrases(home):
    references(home)
    kept = {one.utt for one in lattices(home, "dev", 12)}
    texts = kaldi_text.read(home / "data/dev/text")
    kaldi_text.write({utt: texts[utt] for utt in kept}, home / "data/dev/text")
    said = yield
    assert "difference in recall" in said and "false alarms" in said
    assert "changes" in json.loads((home / "names.json").read_text())["words"]
    assert '"near"' in (home / "near.json").read_text()
    assert "counts" in json.loads((home / "lattice.json").read_text())["words"]


@page("docs/formats.md")
def formats(home):
    own_lists(home)
    lattices(home, "test")
    yield
    there, back = (
        {one.utt: [hyp.text for hyp in one.hyps] for one in jsonl.read(home / f"{name}.jsonl")}
        for name in ("test", "back")
    )
    assert there == back
    assert len(list((home / "lattices.fst").iterdir())) == SIZES["test"]


@page("docs/lms.md")
def lms(home):
    said = yield
    assert all(word in said for word in ("perplexity", "log Z", "pearson", "Williams"))
    for made in ("lm/tta", "lm/domain", "lm/closed"):
        assert (home / made / "config.yaml").exists()


@page("docs/serve.md")
def serve(home):
    """Have an n-gram, lists and weights."""
    own_lists(home)
    shutil.copytree(LM[-1], home / "lm/ngram")
    score = f"score --nbest {home}/dev.jsonl --lm {home}/lm/ngram --out {home}/dev.scores"
    tune = f"tune --nbest {home}/dev.jsonl --scores ngram={home}/dev.scores"
    assert main(score.split()) == 0
    assert main([*tune.split(), "--out", f"{home}/weights.json"]) == 0
    yield
    answers = (home / "answers.jsonl").read_text().splitlines()
    assert all("chosen" in json.loads(one) for one in answers) and len(answers) == SIZES["test"]


@page("docs/export.md")
def export(home):
    """Have an n-gram and a causal model, of few steps."""
    pytest.importorskip("transformers")
    pytest.importorskip("onnx")
    own_lists(home)
    shutil.copytree(LM[-1], home / "lm/words")
    arch = "arch: {layers: 1, dim: 8, heads: 2, ffn: 8}"
    write(home / "causal.yaml", f"{{model: causal, objective: causal, {arch}, steps: 3}}")
    valid, bins = home / "valid.txt", f"{home}/valid.bin"
    for command in (
        f"subword --text {valid} --type bpe --vocab-size 200 --out {home}/subword",
        f"corpus --text {valid} --subword {home}/subword --out {bins}",
        f"train --conf {home}/causal.yaml --train {bins} --valid {bins} --out {home}/lm/causal",
    ):
        assert main(command.split()) == 0
    yield
    made = ("words.arpa", "causal.hf/model.safetensors", "causal.onnx/model.onnx")
    assert all((home / name).exists() for name in (*made, "card/README.md"))


@page("docs/words.md")
def words(home):
    references(home)
    copy_lm(home)
    for name in SIZES:
        jsonl.write(mini(name), home / f"{name}.jsonl")
        upper = [in_upper_case(one) for one in lattices(home, name)]
        shutil.rmtree(home / "lattices" / name)
        LATTICES.write(upper, home / "lattices" / name, "slf")
        command = f"score --nbest {home}/{name}.jsonl --lm {home}/lm"
        assert main([*command.split(), "--out", f"{home}/ngram.{name}.scores"]) == 0
        for place, system in enumerate(("whisper.txt", "vosk.ctm")):
            one_best = [replace(nbest, hyps=nbest.hyps[place:][:1]) for nbest in mini(name)]
            bare = [replace(n, hyps=tuple(Hypothesis(h.text) for h in n.hyps)) for n in one_best]
            form = "ctm" if place else "kaldi-text"
            FORMATS.write(bare, home / f"{name}.{system}", form)
    tune = f"tune --nbest {home}/dev.jsonl --scores ngram={home}/ngram.dev.scores"
    assert main([*tune.split(), "--out", f"{home}/weights.json"]) == 0
    yield
    built = doors.load("lmtools.networks.files:NETWORKS").read(home / "test.networks.json")
    assert [network.utt for network in built] == [nbest.utt for nbest in mini("test")]
    rows = (home / "test.ctm").read_text().splitlines()
    assert len(rows) == sum(len(network.spoken) for network in built)
    assert kaldi_text.read(home / "test.voted.txt").keys() == {one.utt for one in built}
    kaldi_text.write({network.utt: network.text for network in built}, home / "test.txt")
    for name in ("test.txt", "test.lattices.txt"):
        assert improved(home, name)
