"""The commands of README.md and of docs/, run as they stand there, do what the page says.

A block marked `bash` or `python` is run; each section that has one needs a function here that makes
its input and looks at what came out. Lists and lattices of the mini corpus are made in the
toolkit's own files; pocketsphinx itself decodes. What is marked `sh` or `py` takes
long, other machines or programs.
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl, kaldi_text, lists, registry
from lmtools.formats.lattices import LATTICES
from lmtools.types import Hypothesis

ROOT = Path(__file__).parents[2]
MINI = ROOT / "egs/librispeech/mini"
PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
SIZES = {"dev": 60, "test": 60}


def blocks(page: str, title: str, language: str = "bash") -> list[str]:
    """The code of one section of a page."""
    section = (ROOT / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def sections() -> list[tuple[str, str]]:
    """Page and title of each section with commands that are run."""
    titles = [
        (page, title)
        for page in PAGES
        for title in re.findall(r"^## (.*)", (ROOT / page).read_text(), re.MULTILINE)
    ]
    return [one for one in titles if blocks(*one)]


CASES = {}


def case(page: str, title: str):
    """Name the section that a function follows."""
    return lambda function: CASES.setdefault((page, title), function)


@pytest.mark.parametrize("page, title", sections())
def test_commands(page, title, tmp_path, lm, capsys):
    CASES[page, title](tmp_path, lm, capsys)


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    """An n-gram of the mini corpus's text."""
    out = tmp_path_factory.mktemp("lm") / "ngram"
    command = [
        "ngram",
        "--text",
        str(MINI / "train.txt.xz"),
        "--order",
        "3",
        "--normaliser",
        "librispeech",
        "--out",
        str(out),
    ]
    assert main(command) == 0
    return out


def mini(name: str) -> list:
    """The first lists of a set, twenty hypotheses each."""
    nbests = [
        nbest
        for nbest, _ in zip(
            jsonl.read(MINI / f"{name}.nbest.jsonl.xz"), range(SIZES[name]), strict=False
        )
    ]
    return lists.cut_lists(nbests, 20)


def follow(code: list[str], home: Path, lm: Path, *shell: str) -> str:
    """Run a page's commands in `home`; what they print."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [*(shell or ("bash", "-euo", "pipefail")), "-c", "\n".join(code)]
    done = subprocess.run(
        command,
        cwd=home,
        env={**os.environ, "PATH": path, "LM": str(lm), "LMTOOLS_CACHE": "none"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def references(home: Path) -> None:
    """data/SET/text, as all toolkits with utterance ids have it."""
    for name in SIZES:
        (home / "data" / name).mkdir(parents=True)
        kaldi_text.write({nbest.utt: nbest.ref for nbest in mini(name)}, home / f"data/{name}/text")


def error_rate(capsys, ref: Path, hyp: Path, metric="wer") -> float:
    """The score that lmtools evaluate prints."""
    capsys.readouterr()
    assert main(["evaluate", "--ref", str(ref), "--hyp", str(hyp), "--metric", metric]) == 0
    return float(re.match(r"\S+ ([\d.]+)", capsys.readouterr().out)[1])


def improved(capsys, home: Path, text: str = "test.txt") -> bool:
    """Whether the text that the commands wrote has a lower WER than the first hypotheses."""
    kaldi_text.write({nbest.utt: nbest.hyps[0].text for nbest in mini("test")}, home / "first.txt")
    ref = home / "data/test/text"
    return error_rate(capsys, ref, home / text) < error_rate(capsys, ref, home / "first.txt")


@case("docs/toolkits.md", "Kaldi")
def kaldi(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        archives = tmp_path / f"exp/tri5/decode_{name}/nbest/archives.1"
        archives.parent.mkdir(parents=True)
        registry.find_format("kaldi-nbest", FORMATS).write(
            [replace(nbest, ref=None) for nbest in mini(name)], archives
        )
        assert {"words_text", "acwt", "lmwt.lmonly"} <= {path.name for path in archives.iterdir()}
    lang = tmp_path / "data/lang"
    lang.mkdir()
    unpacked = {name: lattices(tmp_path, name) for name in SIZES}
    words = sorted(
        {
            word.upper()
            for some in unpacked.values()
            for lattice in some
            for word in lattice.words
            if word
        }
    )
    (lang / "words.txt").write_text(
        "".join(f"{word} {number}\n" for number, word in enumerate(["<eps>", *words]))
    )
    for name, some in unpacked.items():
        out = tmp_path / f"exp/tri5/decode_{name}/lat.1.gz"
        out.parent.mkdir(parents=True, exist_ok=True)
        upper = [
            replace(lattice, words=tuple(word and word.upper() for word in lattice.words))
            for lattice in some
        ]
        registry.find_format(f"kaldi:words={lang / 'words.txt'}", LATTICES).write(upper, out)
    follow(blocks("docs/toolkits.md", "Kaldi"), tmp_path, lm)
    assert improved(capsys, tmp_path)
    assert improved(capsys, tmp_path, "lattice-test.txt")
    rewritten = list(
        registry.find_format(f"kaldi:words={lang / 'words.txt'}", LATTICES).read(
            tmp_path / "lat.1.gz"
        )
    )
    assert [lattice.utt for lattice in rewritten] == [lattice.utt for lattice in unpacked["test"]]


def lattices(home: Path, name: str) -> list:
    """The lattices of the utterances that `mini` has lists of."""
    out = home / "slf" / name
    out.mkdir(parents=True)
    wanted = {f"{nbest.utt}.slf" for nbest in mini(name)}
    with tarfile.open(MINI / f"{name}.lattices.tar.xz") as packed:
        for member in packed:
            if Path(member.name).name in wanted:
                (out / Path(member.name).name).write_bytes(packed.extractfile(member).read())
    return list(registry.find_format("slf", LATTICES).read(out))


@case("docs/toolkits.md", "pocketsphinx")
def pocketsphinx(tmp_path, lm, capsys):
    if not shutil.which("flite"):
        pytest.skip("flite is not installed, so there is nothing to decode")
    pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    references(tmp_path)
    (tmp_path / "decode.py").write_text(blocks("docs/toolkits.md", "pocketsphinx", "python")[0])
    spoken = {}
    for name in SIZES:
        (tmp_path / "lattices" / name).mkdir(parents=True)
        (tmp_path / "wav" / name).mkdir(parents=True)
        for nbest in mini(name)[:4]:
            spoken[nbest.utt] = nbest.ref.lower()
            wav = tmp_path / f"wav/{name}/{nbest.utt}.wav"
            subprocess.run(
                ["flite", "-voice", "slt", "-t", spoken[nbest.utt], "-o", str(wav)], check=True
            )
        texts = {nbest.utt: nbest.ref.lower() for nbest in mini(name)}
        kaldi_text.write(texts, tmp_path / f"data/{name}/text")
    follow(blocks("docs/toolkits.md", "pocketsphinx"), tmp_path, lm)
    chosen = kaldi_text.read(tmp_path / "test.txt")
    assert len(chosen) == 4 and all(chosen.values())
    refs = {utt: spoken[utt] for utt in chosen}
    kaldi_text.write(refs, tmp_path / "refs.txt")
    assert error_rate(capsys, tmp_path / "refs.txt", tmp_path / "test.txt") < 30


@case("docs/toolkits.md", "Whisper, CTranslate2, Hugging Face")
def whisper(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        tree = []
        for nbest in mini(name):
            hyps = []
            for hyp in nbest.hyps:
                tokens, total = len(hyp.text.split()), hyp.scores["am"] / 20 + hyp.scores["lm"]
                hyps.append({"text": hyp.text, "score": total / tokens, "tokens": tokens})
            tree.append({"utt": nbest.utt, "hypotheses": hyps})
        (tmp_path / f"whisper-{name}.json").write_text(json.dumps(tree))
    follow(blocks("docs/toolkits.md", "Whisper, CTranslate2, Hugging Face"), tmp_path, lm)
    assert improved(capsys, tmp_path)


def tokenised(text: str) -> str:
    """The text as Moses's tokeniser and its translations have it."""
    return re.sub(r"(?<=\w)'(?=\w)", " &apos;", text)


@case("docs/toolkits.md", "Moses, Marian, fairseq")
def moses(tmp_path, lm, capsys):
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
        registry.find_format("moses", FORMATS).write(nbests, tmp_path / f"{name}.nbest")
        (tmp_path / f"{name}.reference.txt").write_text(
            "".join(f"{nbest.ref}\n" for nbest in mini(name))
        )
    follow(blocks("docs/toolkits.md", "Moses, Marian, fairseq"), tmp_path, lm)
    refs = {str(number): nbest.ref for number, nbest in enumerate(mini("test"))}
    first = {str(number): nbest.hyps[0].text for number, nbest in enumerate(mini("test"))}
    kaldi_text.write(refs, tmp_path / "refs.txt")
    kaldi_text.write(first, tmp_path / "first.txt")
    bleu = [
        error_rate(capsys, tmp_path / "refs.txt", tmp_path / text, "bleu")
        for text in ("first.txt", "test.txt")
    ]
    assert bleu[1] > bleu[0]
    assert any("'" in text for text in first.values())
    best = [
        nbest.hyps[0].text.split()
        for nbest in registry.find_format("moses", FORMATS).read(tmp_path / "test.rescored.nbest")
    ]
    assert best == [text.split() for text in kaldi_text.read(tmp_path / "test.txt").values()]


def own_lists(home: Path) -> None:
    """Lists in our form, and the mini corpus's text."""
    for name in SIZES:
        jsonl.write(mini(name), home / f"{name}.jsonl")
    for name in ("train", "valid"):
        text = lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode()
        (home / f"{name}.txt").write_text(text)


@case("README.md", "Rescore your own lists")
def rescore_your_own(home, lm, capsys):
    own_lists(home)
    page = "README.md", "Rescore your own lists"
    (list_of_two,) = blocks(*page, "json")
    assert len(next(jsonl.read(write(home / "two.jsonl", list_of_two))).hyps) == 2
    said = follow(blocks(*page), home, lm)
    references(home)
    assert improved(capsys, home) and "WER" in said
    said = follow(blocks(*page, "python"), home, lm, sys.executable)
    right, wrong = (float(one) for one in said[1 : said.index("]")].split())
    assert right > wrong and said.endswith("[6 6]\n")


def toy_lm(home: Path, lm: Path) -> None:
    """The page's model `lm` and its text."""
    own_lists(home)
    shutil.copytree(lm, home / "lm")


@case("docs/rescoring.md", "Look first")
def look_first(home, lm, capsys):
    toy_lm(home, lm)
    follow(blocks("docs/rescoring.md", "Look first"), home, lm)
    clean, raw = (next(jsonl.read(home / f"test.{kind}jsonl")) for kind in ("clean.", ""))
    assert clean.ref == raw.ref.lower() != raw.ref


@case("docs/rescoring.md", "Score, tune, choose, evaluate")
def four_steps(home, lm, capsys):
    toy_lm(home, lm)
    references(home)
    said = follow(blocks("docs/rescoring.md", "Score, tune, choose, evaluate"), home, lm)
    assert improved(capsys, home) and "oracle WER" in said and "MAPSSWE" in said
    best = {one.utt: one.hyps[0].text for one in jsonl.read(home / "test.new.jsonl")}
    assert best == kaldi_text.read(home / "test.txt")


@case("docs/rescoring.md", "Without a language model: minimum Bayes risk")
def minimum_bayes_risk(home, lm, capsys):
    own_lists(home)
    code = blocks("docs/rescoring.md", "Without a language model: minimum Bayes risk")
    follow(code, home, lm)
    assert len(kaldi_text.read(home / "mbr.txt")) == SIZES["test"]


@case("docs/rescoring.md", "Lattices")
def look_at_lattices(home, lm, capsys):
    references(home)
    lattices(home, "dev")
    (home / "slf").rename(home / "lattices")
    for path in sorted((home / "lattices/dev").iterdir())[5:]:
        path.unlink()
    assert "oracle" in follow(blocks("docs/rescoring.md", "Lattices"), home, lm)


@case("docs/formats.md", "Any format to any other")
def any_to_any(home, lm, capsys):
    own_lists(home)
    lattices(home, "test")
    (home / "slf").rename(home / "lattices")
    follow(blocks("docs/formats.md", "Any format to any other"), home, lm)
    there, back = (
        {one.utt: [hyp.text for hyp in one.hyps] for one in jsonl.read(home / f"{name}.jsonl")}
        for name in ("test", "back")
    )
    assert there == back
    assert len(list((home / "lattices.fst").iterdir())) == SIZES["test"]


@case("docs/clusters.md", "Processes on one machine")
def processes(home, lm, capsys):
    toy_lm(home, lm)
    follow(blocks("docs/clusters.md", "Processes on one machine"), home, lm)
    assert (home / "test.scores").exists()


@case("docs/clusters.md", "Jobs on a cluster")
def jobs(home, lm, capsys):
    toy_lm(home, lm)
    references(home)
    code = blocks("docs/rescoring.md", "Score, tune, choose, evaluate")
    follow(["\n".join(code[0].splitlines()[:2])], home, lm)
    follow(blocks("docs/clusters.md", "Jobs on a cluster"), home, lm)
    assert improved(capsys, home)


TINY = """
batch: {{sentences: 20}}
steps: 3
optim: {{lr: 1.0e-3, warmup: 1}}
model: {model}
objective: {objective}
arch: {arch}
{more}
"""
TINY_TRANSFORMER = "{layers: 1, dim: 8, heads: 2, ffn: 8}"


def tiny_conf(home: Path, name: str, model: str, objective: str, arch: str, more: str = "") -> None:
    """A settings file under the name of a published size."""
    (home / "conf").mkdir(exist_ok=True)
    write(home / f"conf/{name}.yaml", TINY.format(**locals()))


def small_text(home: Path) -> None:
    """A few sentences to train on and to read."""
    own_lists(home)
    for name, lines in (("train", 2000), ("valid", 50)):
        path = home / f"{name}.txt"
        write(path, "".join(path.read_text().lower().splitlines(keepends=True)[:lines]))
    for name in ("test", "sentences"):
        shutil.copy(home / "valid.txt", home / f"{name}.txt")


@case("docs/lms.md", "From text to a model")
def text_to_model(home, lm, capsys):
    small_text(home)
    tiny_conf(home, "tta", "tta", "autoencoding", TINY_TRANSFORMER)
    said = follow(blocks("docs/lms.md", "From text to a model"), home, lm)
    assert "perplexity" in said and (home / "lm/ngram/config.yaml").exists()


@case("docs/lms.md", "Sentence vectors and similarity")
def sentence_vectors(home, lm, capsys):
    small_text(home)
    tiny_conf(home, "tta", "tta", "autoencoding", TINY_TRANSFORMER)
    (code,) = blocks("docs/lms.md", "From text to a model")
    follow(code.splitlines()[:3], home, lm)
    lines = (home / "test.txt").read_text().splitlines()
    write(home / "pairs.tsv", "".join(f"{one}\t{one[:20]}\t{n}\n" for n, one in enumerate(lines)))
    said = follow(blocks("docs/lms.md", "Sentence vectors and similarity"), home, lm)
    assert "pearson" in said and "Williams" in said


@case("docs/lms.md", "Large vocabularies and training criteria")
def large_vocabularies(home, lm, capsys):
    small_text(home)
    tiny_conf(home, "lstm", "lstm", "causal", "{layers: 1, dim: 8, units: 8}")
    said = follow(blocks("docs/lms.md", "Large vocabularies and training criteria"), home, lm)
    assert "log Z" in said and (home / "test.nce.scores").exists()


@case("docs/lms.md", "Word vectors")
def word_vectors(home, lm, capsys):
    small_text(home)
    arch = "{layers: 1, dim: 8, units: 8, piece_dim: 4}"
    tiny_conf(home, "esulmo", "elmo", "two-way", arch)
    follow(blocks("docs/lms.md", "Word vectors"), home, lm)
    assert (home / "words.npz").stat().st_size > 1000


def write(path: Path, text: str) -> Path:
    """The path, where the text now stands."""
    path.write_text(text)
    return path
