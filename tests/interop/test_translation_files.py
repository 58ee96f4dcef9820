"""Files that Moses, Marian and fairseq wrote, from list to significance by the commands that users
call.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.files import read_lines
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.formats import read as read_lists
from lmtools.formats.texts import read_sentences, write_sentences
from lmtools.rescoring.weights import Weights

FILES = Path(__file__).resolve().parents[3] / "shared/data/formats"
pytestmark = pytest.mark.skipif(
    not FILES.is_dir(), reason="no files that Moses, Marian and fairseq wrote"
)
SETS = ("dev", "test")
# Moses's weights of the translation scores
MODELS = {"tm0": 0.03, "tm1": 0.02, "tm2": 0.03, "tm3": 0.02, "tm4": 0}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that calls lmtools in a directory of its own and gives what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(command: str) -> str:
        capsys.readouterr()
        status, printed = main(command.split()), capsys.readouterr()
        assert status == 0, printed.err
        return printed.out

    return call


def halves(path: str) -> None:
    """dev.jsonl and test.jsonl from the lists of `path`."""
    nbests = list(jsonl.read(path))
    jsonl.write(nbests[: len(nbests) // 2], "dev.jsonl")
    jsonl.write(nbests[len(nbests) // 2 :], "test.jsonl")


def rescored(run, text, form: str) -> tuple[Weights, float, float]:
    """The weights from dev.jsonl for BLEU with a bigram of the sentences `text`, and test.jsonl's
    BLEU before and after.

    The new lists are written as test.FORMAT, too, and read again: the order is that of their total,
    the first of each the one chosen.
    """
    write_sentences(text, "lm.txt")
    run("ngram --text lm.txt --order 2 --out lm")
    for name in SETS:
        run(f"score --lm lm --nbest {name}.jsonl --out {name}.scores")
    run("tune --nbest dev.jsonl --scores new=dev.scores --metric bleu --out weights.json")
    run(
        "rescore --nbest test.jsonl --scores new=test.scores --weights weights.json --out test.txt"
        f" --nbest-out test.out --nbest-to {form}"
    )
    old, back = list(jsonl.read("test.jsonl")), list(read_lists("test.out", form))
    chosen = [line.partition(" ")[2] for _, line in read_lines("test.txt")]
    for before, after, best in zip(old, back, chosen, strict=True):
        assert (after.utt, after.hyps[0].text) == (before.utt, best)
        assert sorted(hyp.text for hyp in after.hyps) == sorted(hyp.text for hyp in before.hyps)
        totals = [hyp.scores.get("total", hyp.scores.get("am")) for hyp in after.hyps]
        assert totals == sorted(totals, reverse=True)
    printed = run("evaluate --ref test.jsonl --hyp test.txt --metric bleu --against test.jsonl")
    after, before = map(float, re.findall(r"BLEU ([\d.]+)", printed)[:2])
    return Weights.load("weights.json"), before, after


def total_weights(nbests, names: list[str]) -> np.ndarray:
    """The weights that make the total, but for what a sentence's hypotheses share."""
    rows, totals = [], []
    for nbest in nbests:
        scores = np.array([[hyp.scores[name] for name in (*names, "am")] for hyp in nbest.hyps])
        rows.append(scores[:, :-1] - scores[0, :-1])
        totals.append(scores[:, -1] - scores[0, -1])
    weights, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(totals), rcond=None)
    assert np.abs(np.concatenate(rows) @ weights - np.concatenate(totals)).max() < 1e-3
    return weights


def test_moses(run):
    """A dozen features of an old decoder; our weights are better on the other half."""
    references = read_sentences(FILES / "moses.reference.txt")
    write_sentences(references[:100], "reference.txt")
    options = (
        "--format moses --ref-lines reference.txt --detokenise en --detokenise-ref en --case"
        " sentence --dedup --depth 15"
    )
    run(f"convert {FILES}/moses.nbest.xz all.jsonl {options}")
    nbests = list(jsonl.read("all.jsonl"))
    hyps = [hyp for nbest in nbests for hyp in nbest.hyps]
    assert not any(
        re.search(r" [,.](?!\S)", text)
        for text in [hyp.text for hyp in hyps] + [nbest.ref for nbest in nbests]
    )
    names = sorted(hyps[0].scores.keys() - {"am"})
    weights = dict(zip(names, total_weights(nbests, names), strict=True))
    assert weights == pytest.approx(
        {name: {"d": 0.1, "l": 0.1, "w": 0}.get(name[0], MODELS.get(name)) for name in names},
        abs=1e-4,
    )
    halves("all.jsonl")
    found, before, after = rescored(run, references[100:500], "moses")
    assert found.features.keys() == {*names, "am", "new", "words"}
    assert found.dev.score > found.dev.first_pass and after > before


def test_marian(run):
    """Lists without references: the last hypothesis serves, to run, not to gain."""
    run(f"convert {FILES}/marian.nbest all.jsonl --format marian:bpe=subword_nmt")
    nbests = list(jsonl.read("all.jsonl"))
    run(f"convert {FILES}/marian.nbest pieces.jsonl --format marian")
    run("convert pieces.jsonl again --to marian")
    assert [" ".join(line.split()) for _, line in read_lines(FILES / "marian.nbest")] == [
        line for _, line in read_lines("again")
    ]
    # one model of weight 1, not normalised: its log-probability is the total, and the lists are
    # sorted by it
    for nbest in nbests:
        assert all(
            hyp.scores["F0"] == hyp.scores["am"] < 0 and "@@" not in hyp.text for hyp in nbest.hyps
        )
        assert [hyp.scores["am"] for hyp in nbest.hyps] == sorted(
            (hyp.scores["am"] for hyp in nbest.hyps), reverse=True
        )
    write_sentences([nbest.hyps[-1].text for nbest in nbests], "reference.txt")
    options = (
        "--format marian:bpe=subword_nmt --ref-lines reference.txt --detokenise de --detokenise-ref"
        " de --case sentence"
    )
    run(f"convert {FILES}/marian.nbest all.jsonl {options}")
    nbests = list(jsonl.read("all.jsonl"))
    assert not any("&" in hyp.text or " ," in hyp.text for nbest in nbests for hyp in nbest.hyps)
    halves("all.jsonl")
    found, before, after = rescored(
        run, [nbest.hyps[-1].text for nbest in nbests], "marian:bpe=subword_nmt"
    )
    assert found.dev.score > found.dev.first_pass and after > before


def test_fairseq(run):
    """A search that kept one hypothesis: the commands run, and change nothing."""
    run(f"convert {FILES}/fairseq-generate.txt all.jsonl")
    # bits of the tokens, four decimals each, end of sentence among them
    for nbest in jsonl.read("all.jsonl"):
        parts = [float(part) for part in nbest.hyps[0].extra["P"].split()]
        assert nbest.hyps[0].scores["am"] == pytest.approx(
            math.log(2) * sum(parts), abs=1e-4 * len(parts)
        )
    run(f"convert {FILES}/fairseq-generate.txt all.jsonl --detokenise en --detokenise-ref en")
    texts = [text for nbest in jsonl.read("all.jsonl") for text in (nbest.ref, nbest.hyps[0].text)]
    assert not any(re.search(r"@@|&apos;|&quot;| [,.](?!\S)", text) for text in texts)
    halves("all.jsonl")
    _, before, after = rescored(run, texts[::2], "jsonl")
    assert after == before > 20


def test_doctor_knows_what_has_to_be_done(run, capsys):
    """Each step of the way that the findings name takes them away."""
    for options, causes in (
        (
            "fairseq --detokenise en",
            ["references in lists.jsonl have escapes", "references in lists.jsonl have spaces"],
        ),
        ("fairseq --detokenise-ref en", ["hypotheses have escapes", "hypotheses have spaces"]),
        (
            "fairseq:bpe=none --detokenise en --detokenise-ref en",
            ["hypotheses have subword", "references in lists.jsonl have subword"],
        ),
        ("fairseq --detokenise en --detokenise-ref en", []),
    ):
        run(f"convert {FILES}/fairseq-generate.txt lists.jsonl --format {options}")
        status, printed = main(["doctor", "--nbest", "lists.jsonl"]), capsys.readouterr().out
        errors = [line for line in printed.splitlines() if line.startswith("error")]
        assert len(errors) == len(causes) == printed.count("error:") and status == bool(causes), (
            printed
        )
        assert all(cause in error for cause, error in zip(causes, errors, strict=True)), printed
