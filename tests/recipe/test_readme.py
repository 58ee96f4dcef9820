"""The README's examples for users of other toolkits: its own commands, run as they stand there,
lower the error rate.

Their input is made here: lists and lattices of the mini corpus in the toolkit's own files;
pocketsphinx itself decodes.
"""

import json
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
README = (ROOT / "README.md").read_text()
SIZES = {"dev": 60, "test": 60}


def blocks(title: str, language: str = "bash") -> list[str]:
    """The code of one section of the README."""
    section = README.partition(f"\n### {title}\n")[2].partition("\n#")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


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


def follow(code: list[str], home: Path, lm: Path) -> None:
    """Run the README's commands in `home`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", "\n".join(code)]
    done = subprocess.run(
        command,
        cwd=home,
        env={**os.environ, "PATH": path, "LM": str(lm)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


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


def test_kaldi_lists(tmp_path, lm, capsys):
    references(tmp_path)
    for name in SIZES:
        archives = tmp_path / f"exp/tri5/decode_{name}/nbest/archives.1"
        archives.parent.mkdir(parents=True)
        registry.find_format("kaldi-nbest", FORMATS).write(
            [replace(nbest, ref=None) for nbest in mini(name)], archives
        )
        assert {"words_text", "acwt", "lmwt.lmonly"} <= {path.name for path in archives.iterdir()}
    follow(blocks("Kaldi")[:1], tmp_path, lm)
    assert improved(capsys, tmp_path)


def test_kaldi_lattices(tmp_path, lm, capsys):
    references(tmp_path)
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
        out.parent.mkdir(parents=True)
        upper = [
            replace(lattice, words=tuple(word and word.upper() for word in lattice.words))
            for lattice in some
        ]
        registry.find_format(f"kaldi:words={lang / 'words.txt'}", LATTICES).write(upper, out)
    follow(blocks("Kaldi")[1:], tmp_path, lm)
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


def test_pocketsphinx(tmp_path, lm, capsys):
    if not shutil.which("flite"):
        pytest.skip("flite is not installed, so there is nothing to decode")
    pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    references(tmp_path)
    (tmp_path / "decode.py").write_text(blocks("pocketsphinx", "python")[0])
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
    follow(blocks("pocketsphinx"), tmp_path, lm)
    chosen = kaldi_text.read(tmp_path / "test.txt")
    assert len(chosen) == 4 and all(chosen.values())
    refs = {utt: spoken[utt] for utt in chosen}
    kaldi_text.write(refs, tmp_path / "refs.txt")
    assert error_rate(capsys, tmp_path / "refs.txt", tmp_path / "test.txt") < 30


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
    follow(blocks("Whisper, CTranslate2, Hugging Face"), tmp_path, lm)
    assert improved(capsys, tmp_path)


def tokenised(text: str) -> str:
    """The text as Moses's tokeniser and its translations have it."""
    return re.sub(r"(?<=\w)'(?=\w)", " &apos;", text)


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
        registry.find_format("moses", FORMATS).write(nbests, tmp_path / f"{name}.nbest")
        (tmp_path / f"{name}.reference.txt").write_text(
            "".join(f"{nbest.ref}\n" for nbest in mini(name))
        )
    follow(blocks("Moses, Marian, fairseq"), tmp_path, lm)
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
