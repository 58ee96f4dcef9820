"""The commands of README.md and of docs/, run as they stand there, do what the page says.

A block marked `bash` or `python` is run; each section that has one needs a function here that makes
its input and looks at what came out. Lists and lattices of the mini corpus are made in the
toolkit's own files; pocketsphinx itself decodes. What is marked `sh` or `py` takes long,
other machines or programs.
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
from itertools import islice
from pathlib import Path

import pytest

from lmtools.base import doors
from lmtools.cli import main
from lmtools.formats import FORMATS, edits, jsonl, kaldi_text, scores
from lmtools.formats.lattices import LATTICES
from lmtools.text.corpus import Corpus
from lmtools.types import Hypothesis, NBest

ROOT = Path(__file__).parents[2]
MINI = ROOT / "egs/librispeech/mini"
# test_tutorials.py follows those
DOCS = sorted({*(ROOT / "docs").glob("*.md")} - {*(ROOT / "docs").glob("tutorial-*.md")})
PAGES = ("README.md", *(f"docs/{path.name}" for path in DOCS))
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


FOLLOWED = set()


def follows(page: str, *titles: str):
    """Name the sections whose commands a test runs."""
    FOLLOWED.update((page, title) for title in titles)
    return lambda test: test


def test_every_section_is_followed():
    assert set(sections()) == FOLLOWED


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    """An n-gram of the mini corpus's text."""
    out = tmp_path_factory.mktemp("lm") / "ngram"
    command = f"ngram --text {MINI}/train.txt.xz --order 3 --normaliser librispeech --out {out}"
    assert main(command.split()) == 0
    return out


def mini(name: str) -> list:
    """The first lists of a set, twenty hypotheses each."""
    nbests = islice(jsonl.read(MINI / f"{name}.nbest.jsonl.xz"), SIZES[name])
    return [edits.cut_list(nbest, 20) for nbest in nbests]


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


@follows("docs/toolkits.md", "Kaldi")
def test_kaldi(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        archives = tmp_path / f"exp/tri5/decode_{name}/nbest/archives.1"
        archives.parent.mkdir(parents=True)
        bare = [replace(nbest, ref=None) for nbest in mini(name)]
        FORMATS.write(bare, archives, "kaldi-nbest")
        assert {"words_text", "acwt", "lmwt.lmonly"} <= {path.name for path in archives.iterdir()}
    upper = {name: [in_upper_case(one) for one in lattices(tmp_path, name)] for name in SIZES}
    words = {word for some in upper.values() for one in some for word in one.words if word}
    ids = tmp_path / "data/lang/words.txt"
    ids.parent.mkdir()
    lines = (f"{word} {number}\n" for number, word in enumerate(["<eps>", *sorted(words)]))
    write(ids, "".join(lines))
    for name, some in upper.items():
        LATTICES.write(some, tmp_path / f"exp/tri5/decode_{name}/lat.1.gz", f"kaldi:words={ids}")
    follow(blocks("docs/toolkits.md", "Kaldi"), tmp_path, lm)
    assert improved(capsys, tmp_path)
    assert improved(capsys, tmp_path, "lattice-test.txt")
    rewritten = LATTICES.read(tmp_path / "lat.1.gz", f"kaldi:words={ids}")
    assert [lattice.utt for lattice in rewritten] == [lattice.utt for lattice in upper["test"]]


def in_upper_case(lattice):
    """The lattice with all its words so."""
    return replace(lattice, words=tuple(word and word.upper() for word in lattice.words))


def lattices(home: Path, name: str) -> list:
    """The lattices of the utterances that `mini` has lists of."""
    out = home / "slf" / name
    out.mkdir(parents=True)
    wanted = {f"{nbest.utt}.slf" for nbest in mini(name)}
    with tarfile.open(MINI / f"{name}.lattices.tar.xz") as packed:
        for member in packed:
            if Path(member.name).name in wanted:
                (out / Path(member.name).name).write_bytes(packed.extractfile(member).read())
    return LATTICES.read(out, "slf")


@follows("docs/toolkits.md", "pocketsphinx")
def test_pocketsphinx(tmp_path, lm, capsys):
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


@follows("docs/toolkits.md", "Whisper, CTranslate2, Hugging Face")
def test_whisper(tmp_path, lm, capsys):
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


WHISPER = "Four commands", "With transcripts of some recordings", "Evaluate"


@follows("docs/whisper.md", *WHISPER)
def test_recordings(tmp_path, lm):
    """From where the recogniser has been: its lists, in its own writing."""
    shutil.copytree(lm, tmp_path / "lm")
    for name in SIZES:
        own = [
            replace(
                nbest,
                hyps=tuple(replace(hyp, text=f"{hyp.text.capitalize()}.") for hyp in nbest.hyps),
            )
            for nbest in mini(name)
        ]
        jsonl.write(own, tmp_path / f"{name}.whisper.jsonl")
    four, tuned, better = (blocks("docs/whisper.md", title) for title in WHISPER)
    follow(four, tmp_path, lm)
    assert kaldi_text.read(tmp_path / "test.txt.written").keys() == {one.utt for one in own}
    said = follow([*tuned, *better], tmp_path, lm)
    after, before = (float(one) for one in re.findall(r"WER ([\d.]+)%", said))
    assert after < before < 40 and "|norm:whisper-english(" in said
    plain, written = (kaldi_text.read(tmp_path / f"test.txt{end}") for end in ("", ".written"))
    assert all(text[0].isupper() and text[-1] == "." for text in written.values())
    assert plain == {utt: text.lower()[:-1] for utt, text in written.items()}


@follows("docs/toolkits.md", "Vosk")
def test_vosk(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        lines = []
        for nbest in mini(name):
            found = [
                {"confidence": hyp.scores["am"] / 20 + hyp.scores["lm"], "text": f" {hyp.text}"}
                for hyp in nbest.hyps
            ]
            lines.append(json.dumps({"utt": nbest.utt, "alternatives": found}) + "\n")
        (tmp_path / f"vosk-{name}.json").write_text("".join(lines))
    follow(blocks("docs/toolkits.md", "Vosk"), tmp_path, lm)
    assert improved(capsys, tmp_path)


def tokenised(text: str) -> str:
    """The text as Moses's tokeniser and its translations have it."""
    return re.sub(r"(?<=\w)'(?=\w)", " &apos;", text)


@follows("docs/toolkits.md", "Moses, Marian, fairseq")
def test_moses(tmp_path, lm, capsys):
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
        FORMATS.write(nbests, tmp_path / f"{name}.nbest", "moses")
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
        for nbest in FORMATS.read(tmp_path / "test.rescored.nbest", "moses")
    ]
    assert best == [text.split() for text in kaldi_text.read(tmp_path / "test.txt").values()]


def own_lists(home: Path) -> None:
    """Lists in our form, and the mini corpus's text."""
    for name in SIZES:
        jsonl.write(mini(name), home / f"{name}.jsonl")
    for name in ("train", "valid"):
        text = lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode()
        (home / f"{name}.txt").write_text(text)


@follows("README.md", "Rescore your own lists")
def test_real_lists(tmp_path, lm):
    page = "README.md", "Rescore your own lists"
    (list_of_two,) = blocks(*page, "json")
    assert len(next(jsonl.read(write(tmp_path / "two.jsonl", list_of_two))).hyps) == 2
    (tmp_path / "egs").symlink_to(ROOT / "egs")
    rescue, single = blocks(*page)
    table = follow([rescue], tmp_path, lm).partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text()
    assert table.startswith(" ") and f"```\n{table}```" in readme
    chosen = [(tmp_path / f"new/test.txt{end}").read_bytes() for end in ("", ".written")]
    shutil.rmtree(tmp_path / "new")
    variables = rescue.partition("\n")[0]
    (tmp_path / "new").mkdir()
    said = follow([variables, single], tmp_path, lm)
    assert chosen == [(tmp_path / f"new/test.txt{end}").read_bytes() for end in ("", ".written")]
    after, before = (float(one) for one in re.findall(r"WER ([\d.]+)%", said))
    lowered = f"lowers the WER from 11.05% to {after:.2f}%"
    assert before == 11.05 and lowered in readme.replace("\n", " ")
    said = follow(blocks(*page, "python"), tmp_path, lm, sys.executable)
    first, best, right, wrong = map(float, re.findall(r"-?[\d.]+", said))
    assert (round(first, 2), round(best, 2)) == (before, after)
    assert f"{before} and {after}" in readme and right > wrong


def test_python(tmp_path, lm):
    own_lists(tmp_path)
    shutil.copytree(lm, tmp_path / "lm")
    page = "docs/python.md"
    code = [
        part
        for title in ("Rescoring", "Tokens and words")
        for part in blocks(page, title, "python")
    ]
    said = follow(code, tmp_path, lm, sys.executable)
    first, best, *interval = map(float, re.findall(r"[\d.]+", said.splitlines()[0]))
    assert interval[0] < best < interval[1] and best < first
    assert "city" in said and len(list(jsonl.read(tmp_path / "dev.best.jsonl"))) == SIZES["dev"]


RESCORING = (
    "All in one command", "Check the lists", "Score, tune, choose, evaluate",
    "Context across utterances", "Score only what may still win",
    "Without a language model: minimum Bayes risk", "Lattices",
)  # fmt: skip
CLUSTERS = "Processes on one machine", "Jobs on a cluster", "Text of any size"


@follows("docs/rescoring.md", *RESCORING)
@follows("docs/clusters.md", *CLUSTERS)
def test_rescoring(tmp_path, lm, capsys):
    own_lists(tmp_path)
    shutil.copytree(lm, tmp_path / "lm")
    references(tmp_path)
    lattices(tmp_path, "dev")
    for path in sorted((tmp_path / "slf/dev").iterdir())[5:]:
        path.unlink()
    (tmp_path / "slf").rename(tmp_path / "lattices")
    said = "".join(follow(blocks("docs/rescoring.md", title), tmp_path, lm) for title in RESCORING)
    assert all(word in said for word in ("oracle WER", "MAPSSWE", "arcs"))
    clean, raw = (next(jsonl.read(tmp_path / f"test.{kind}jsonl")) for kind in ("clean.", ""))
    assert clean.ref == raw.ref.lower() != raw.ref
    best = {one.utt: one.hyps[0].text for one in jsonl.read(tmp_path / "test.new.jsonl")}
    assert best == kaldi_text.read(tmp_path / "test.txt")
    assert improved(capsys, tmp_path)
    assert kaldi_text.read(tmp_path / "lazy.txt").keys() == best.keys()
    assert len(kaldi_text.read(tmp_path / "mbr.txt")) == SIZES["test"]
    scores = (tmp_path / "test.scores").read_text()
    follow(blocks("docs/clusters.md", CLUSTERS[0]), tmp_path, lm)
    assert (tmp_path / "test.scores").read_text() == scores
    follow(blocks("docs/clusters.md", CLUSTERS[1]), tmp_path, lm)
    assert (tmp_path / "test.scores").read_text() == scores
    follow(blocks("docs/clusters.md", CLUSTERS[2]), tmp_path, lm)
    assert len(Corpus.open(tmp_path / "train.words.bin").shards) == 1


@follows("docs/evaluation.md", "A line that signs a rescoring", "NIST's rules")
def test_scoring(tmp_path, lm):
    references(tmp_path)
    kaldi_text.write(kaldi_text.read(tmp_path / "data/test/text"), tmp_path / "test.txt")
    (tmp_path / "en.glm").write_text(";; rules\nUH => (%HESITATION) / [ ] __ [ ]\n")
    (tmp_path / "test.stm").write_text("r 1 ann 0.0 2.0 <o,f> uh yes\n")
    (tmp_path / "test.ctm").write_text("r 1 0.1 0.2 yes\n")
    said = follow(blocks("docs/evaluation.md", "NIST's rules"), tmp_path, lm)
    assert said.count("WER 0.00%") == 4
    own_lists(tmp_path)
    for part in ("dev", "test"):
        score = ["--nbest", str(tmp_path / f"{part}.jsonl"), "--lm", str(lm)]
        assert main(["score", *score, "--out", str(tmp_path / f"{part}.scores")]) == 0
    tune = ["--nbest", str(tmp_path / "dev.jsonl"), "--out", str(tmp_path / "weights.json")]
    assert main(["tune", *tune, "--scores", f"tta={tmp_path / 'dev.scores'}"]) == 0
    said = follow(blocks("docs/evaluation.md", "A line that signs a rescoring"), tmp_path, lm)
    assert said.count("as signed") == 8 and "DIFFERENT" not in said


@follows("docs/phrases.md", "A Kaldi lattice")
def test_phrases_on_lattices(tmp_path, lm):
    references(tmp_path)
    lattices(tmp_path, "dev")
    for path in sorted((tmp_path / "slf/dev").iterdir())[5:]:
        path.unlink()
    (tmp_path / "slf").rename(tmp_path / "lattices")
    refs = kaldi_text.read(tmp_path / "data/dev/text")
    kept = {path.stem for path in (tmp_path / "lattices/dev").iterdir()}
    own = {utt: text for utt, text in refs.items() if utt in kept}
    kaldi_text.write(own, tmp_path / "data/dev/text")
    shutil.copytree(lm, tmp_path / "lm")
    follow(blocks("docs/phrases.md", "A Kaldi lattice"), tmp_path, lm)
    lists = list(jsonl.read(tmp_path / "dev.lattice.jsonl"))
    assert len(lists) == 5 and "phrases" not in lists[0].hyps[0].scores
    assert "counts" in json.loads((tmp_path / "lattice.json").read_text())["words"]


@follows("docs/phrases.md", "A Whisper user", "Names that no hypothesis has")
def test_phrases(tmp_path, lm):
    own_lists(tmp_path)
    shutil.copytree(lm, tmp_path / "lm")
    printed = follow(blocks("docs/phrases.md", "A Whisper user"), tmp_path, lm)
    assert "difference in recall" in printed and "false alarms" in printed
    assert (tmp_path / "test.txt.written").exists()
    assert "changes" in json.loads((tmp_path / "names.json").read_text())["words"]
    follow(blocks("docs/phrases.md", "Names that no hypothesis has"), tmp_path, lm)
    assert '"near"' in (tmp_path / "near.json").read_text()
    code = blocks("docs/phrases.md", "A Python program", "python")
    assert len(follow(code, tmp_path, lm, sys.executable).split()) == 2


@follows("docs/formats.md", "Any format to any other")
def test_formats(tmp_path, lm):
    own_lists(tmp_path)
    lattices(tmp_path, "test")
    (tmp_path / "slf").rename(tmp_path / "lattices")
    follow(blocks("docs/formats.md", "Any format to any other"), tmp_path, lm)
    there, back = (
        {one.utt: [hyp.text for hyp in one.hyps] for one in jsonl.read(tmp_path / f"{name}.jsonl")}
        for name in ("test", "back")
    )
    assert there == back
    assert len(list((tmp_path / "lattices.fst").iterdir())) == SIZES["test"]


CONF = {  # in the place of published sizes
    "tta": "{model: tta, objective: autoencoding, arch: {layers: 1, dim: 8, heads: 2, ffn: 8}",
    "lstm": "{model: lstm, objective: causal, arch: {layers: 1, dim: 8, units: 8}",
    "esulmo": (
        "{model: elmo, objective: two-way, arch: {layers: 1, dim: 8, units: 8, piece_dim: 4}"
    ),
}
LMS = (
    "From text to a model",
    "From another model",
    "Large vocabularies and training criteria",
    "Word vectors",
    "Sentence vectors and similarity",
)


@follows("docs/lms.md", *LMS)
def test_lms(tmp_path, lm):
    own_lists(tmp_path)
    (tmp_path / "conf").mkdir()
    for name, settings in CONF.items():
        more = ", batch: {sentences: 20}, steps: 3, optim: {lr: 1.0e-3, warmup: 1}}"
        write(tmp_path / f"conf/{name}.yaml", settings + more)
    for name, lines in (("train", 2000), ("valid", 50)):
        path = tmp_path / f"{name}.txt"
        write(path, "".join(path.read_text().lower().splitlines(keepends=True)[:lines]))
    lines = (tmp_path / "valid.txt").read_text().splitlines()
    for name in ("test", "sentences"):
        write(tmp_path / f"{name}.txt", "\n".join(lines) + "\n")
    pairs = "".join(f"{one}\t{one[:20]}\t{n}\n" for n, one in enumerate(lines))
    write(tmp_path / "pairs.tsv", pairs)
    said = "".join(follow(blocks("docs/lms.md", title), tmp_path, lm) for title in LMS)
    assert all(word in said for word in ("perplexity", "log Z", "pearson", "Williams"))
    for made in (
        "lm/ngram/config.yaml",
        "lm/domain/config.yaml",
        "test.nce.scores",
        "words.npz",
        "vectors.npz",
    ):
        assert (tmp_path / made).stat().st_size > 100


@follows("docs/lms.md", "Translation models")
def test_translation_models(tmp_path, lm):
    """German is English read backwards, here."""
    (tmp_path / "conf").mkdir()
    arch = "{layers: 1, decoder_layers: 1, dim: 8, heads: 2, ffn: 8, positions: 200}"
    settings = f"{{model: seq2seq, objective: translation, arch: {arch}, steps: 3}}"
    write(tmp_path / "conf/seq2seq.yaml", settings)
    with lzma.open(MINI / "train.txt.xz", "rt") as stream:
        lines = [next(stream).lower() for _ in range(1000)]
    texts = [tuple(map(Hypothesis, pair)) for pair in zip(lines[:4], lines[4:8], strict=True)]
    jsonl.write([NBest(f"u{n}", hyps) for n, hyps in enumerate(texts)], tmp_path / "test.jsonl")
    for name, some in (("train", lines), ("valid", lines[:50]), ("test", lines[:4])):
        write(tmp_path / f"{name}.en", "".join(some))
        write(tmp_path / f"{name}.de", "".join(" ".join(one.split()[::-1]) + "\n" for one in some))
    follow(blocks("docs/lms.md", "Translation models"), tmp_path, lm)
    assert Corpus.open(tmp_path / "train.de-en.bin").header.pairs
    for name in ("direct", "channel"):
        assert len(scores.read(tmp_path / f"test.{name}.scores").log_prob) == 4


def write(path: Path, text: str) -> Path:
    """The path, where the text now stands."""
    path.write_text(text)
    return path


WORDS = "Networks", "Confidences", "Several systems", "New hypotheses"


@follows("docs/words.md", *WORDS)
def test_words(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        jsonl.write(mini(name), tmp_path / f"{name}.jsonl")
        upper = [in_upper_case(one) for one in lattices(tmp_path, name)]
        LATTICES.write(upper, tmp_path / "lattices" / name, "slf")
        command = f"score --nbest {name}.jsonl --lm $LM --out ngram.{name}.scores"
        follow([f"lmtools {command}"], tmp_path, lm)
        for place, system in enumerate(("whisper.txt", "vosk.ctm")):
            one_best = [replace(nbest, hyps=nbest.hyps[place:][:1]) for nbest in mini(name)]
            bare = [replace(n, hyps=tuple(Hypothesis(h.text) for h in n.hyps)) for n in one_best]
            form = "ctm" if place else "kaldi-text"
            FORMATS.write(bare, tmp_path / f"{name}.{system}", form)
    follow(
        [
            "lmtools tune --nbest dev.jsonl --scores ngram=ngram.dev.scores --out weights.json",
            *(code for title in WORDS for code in blocks("docs/words.md", title)),
        ],
        tmp_path,
        lm,
    )
    networks = doors.load("lmtools.networks.files:NETWORKS")
    built = networks.read(tmp_path / "test.networks.json")
    assert [network.utt for network in built] == [nbest.utt for nbest in mini("test")]
    rows = (tmp_path / "test.ctm").read_text().splitlines()
    assert len(rows) == sum(len(network.spoken) for network in built)
    kaldi_text.write({network.utt: network.text for network in built}, tmp_path / "test.txt")
    assert improved(capsys, tmp_path)
    assert improved(capsys, tmp_path, "test.lattices.txt")
    assert kaldi_text.read(tmp_path / "test.voted.txt").keys() == {one.utt for one in built}
    assert (tmp_path / "test.voted.ctm").exists()
    assert (tmp_path / "confidences.png").exists()
    assert improved(capsys, tmp_path, "test.more.txt")
