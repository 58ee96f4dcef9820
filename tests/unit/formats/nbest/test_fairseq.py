import math
from pathlib import Path

import pytest

from lmtools.formats import detect
from lmtools.formats.nbest import fairseq

REAL = Path(__file__).resolve().parents[5] / "shared/data/formats/fairseq-generate.txt"
LOG = """\
2021-01-01 00:00:00 | INFO | fairseq_cli.generate | {'_name': None}
S-3\tblauer fink
T-3\tblue fin@@ ch
H-3\t-0.42\tblue fin@@ ch
D-3\t-0.42\tblue finch
P-3\t-0.31 -0.52 -0.44 -0.41
H-3\t-0.9\tblue
D-3\t-0.9\tblue
P-3\t-1.0 -0.8
S-1\tx
T-1\t
H-1\t-0.5\t
D-1\t-0.5\t
P-1\t-0.5
2021-01-01 00:00:01 | INFO | fairseq_cli.generate | Generate test with beam=5: BLEU4 = 1.00
"""


def read(tmp_path, log, **options):
    """What is read from `log`."""
    path = tmp_path / "log"
    path.write_text(log)
    return fairseq.read(path, **options)


def test_reads_a_log(tmp_path):
    first, third = read(tmp_path, LOG)  # by number, though written by length
    assert detect(tmp_path / "log") == "fairseq"
    assert (third.utt, third.ref, dict(third.extra)) == ("3", "blue finch", {"S": "blauer fink"})
    assert [hyp.text for hyp in third.hyps] == ["blue finch", "blue"]
    # H is the mean of base-2 logarithms over the tokens and the end of sentence
    assert [hyp.scores["am"] for hyp in third.hyps] == pytest.approx(
        [math.log(2**-1.68), math.log(2**-1.8)]
    )
    assert (first.ref, first.hyps[0].text) == ("", "")


def test_any_order_of_lines(tmp_path):
    want = read(tmp_path, LOG)
    # stable: as `grep ^H; grep ^P` would leave them
    order = sorted(LOG.splitlines(), key=lambda line: line[:1])
    assert {nbest.utt: nbest for nbest in read(tmp_path, "\n".join(order))} == {
        nbest.utt: nbest for nbest in want
    }


@pytest.mark.parametrize(
    ("head", "parts", "options", "base2"),
    [
        ("-0.5\ta b", None, {}, -1.5),
        ("-0.5\ta b", None, {"normalised": "no"}, -0.5),
        ("-0.5\ta b", None, {"lenpen": "2"}, -4.5),
        # agrees but for its rounding: H has more digits
        ("-0.5\ta b", "-0.4 -0.6 -0.50004", {}, -1.5),
        # subword marks were removed from H: P knows the length
        ("-0.5\ta b", "-0.5 -0.5 -0.5 -0.5", {}, -2.0),
        ("-1.5\ta b", "-0.4 -0.6 -0.5", {}, -1.5),  # the search was not normalised: P says so
        ("-0.5\ta b", "", {}, -1.5),
    ],
)
def test_the_probability_of_the_sentence(tmp_path, head, parts, options, base2):
    log = f"H-0\t{head}\n" + (f"P-0\t{parts}\n" if parts is not None else "")
    assert read(tmp_path, log, **options)[0].hyps[0].scores["am"] == pytest.approx(
        base2 * math.log(2), abs=1e-12
    )


@pytest.mark.parametrize(
    ("head", "bpe", "text"),
    [
        ("blue fin@@ ch", None, "blue finch"),
        ("blue fin@@ ch", "none", "blue fin@@ ch"),
        ("▁blue ▁fin ch", None, "blue finch"),
        ("▁blue ▁fin ch", "subword_nmt", "▁blue ▁fin ch"),
        ("blue fin ch", "sentencepiece", "blue fin ch"),
    ],
)
def test_subword_marks(tmp_path, head, bpe, text):
    found = read(tmp_path, f"T-0\t{head}\nH-0\t-1\t{head}\n", **({"bpe": bpe} if bpe else {}))
    assert (found[0].hyps[0].text, found[0].ref) == (text, text)


@pytest.mark.skipif(not REAL.exists(), reason="no log that fairseq wrote")
def test_a_log_that_fairseq_wrote():
    found = fairseq.read(REAL)
    assert len(found) == 60 and not any("@@" in hyp.text for nbest in found for hyp in nbest.hyps)
    for nbest in found:  # the token scores, which nothing above has used, say the same
        (hyp,) = nbest.hyps
        parts = [float(part) for part in hyp.extra["P"].split()]
        assert hyp.scores["am"] == pytest.approx(sum(parts) * math.log(2), abs=1e-4 * len(parts))
