import bz2
import gzip
import math
import re
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS
from lmtools.formats import detect
from lmtools.formats.nbest import srilm
from lmtools.types import Hypothesis, NBest

# the manual's definition; SRILM's own constant differs by 1e-9 of it
BYTELOG = 1024 * math.log(1.0001)
DETAILED = """\
NBestList2.0
(-71234) blue ( st: 0.10 et: 0.40 g: -120 a: -900 ) b[lu] ( st: 0.10 et: 0.20 g: 0 a: -400 ) lu-1 ( st: 0.15 et: 0.20 g: 0 a: -1 ) \
uw ( st: 0.30 et: 0.40 g: 0 a: -500 ) finch ( st: 0.41 et: 0.90 g: -80 a: -100 )
(-80000) -pau- ( st: 0.00 et: 0.90 g: 0 a: -7 )
"""


def file(tmp_path, content, name="zed1"):
    """A file with `content`."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path


def written(tmp_path, nbests):
    """What is written of the list of `zed1`."""
    srilm.write(nbests, tmp_path / "again" / "zed1")
    return (tmp_path / "again" / "zed1").read_bytes()


def test_reads_base_ten_scores(tmp_path):
    content = "-311.2 -14.9 2 blue finch\n-320 -20 3 blue finch\n\n-1 -2 0\n"
    path = file(tmp_path, content, "zed1.gz")
    assert detect(path) == "srilm"
    (nbest,) = srilm.read(path)
    assert nbest.utt == "zed1"
    assert [hyp.text for hyp in nbest.hyps] == ["blue finch", "blue finch", ""]
    assert dict(nbest.hyps[0].scores) == pytest.approx(
        {"am": -311.2 * math.log(10), "lm": -14.9 * math.log(10)}
    )
    again = written(tmp_path, [nbest])
    assert again == b"-311.2 -14.9 2 blue finch\n-320 -20 2 blue finch\n-1 -2 0\n"


def test_the_page_says_how_weights_of_srilm_are_taken_over(tmp_path):
    """SRILM's total is acoustic + lmw x lm + wtw x words + a weight x a score directory."""
    page = Path(__file__).parents[4] / "docs/kaldi.md"
    (factor,) = re.findall(r"score\s+directories\s+by ([\d.]+)", page.read_text())
    rng = np.random.default_rng(1)
    rows = [(*rng.uniform(-400, -300, 1), *rng.uniform(-40, -10, 1), n) for n in range(2, 9)]
    directory = rng.uniform(-9, 0, len(rows))
    lines = [f"{am} {lm} {n} {' '.join(['fin'] * n)}\n" for am, lm, n in rows]
    (nbest,) = srilm.read(file(tmp_path, "".join(lines)))
    lmw, wtw, more = 8.0, 3.0, 2.0
    theirs = [
        am + lmw * lm + wtw * n + more * d for (am, lm, n), d in zip(rows, directory, strict=True)
    ]
    ours = [
        hyp.scores["am"] + lmw * hyp.scores["lm"] + float(factor) * (wtw * n + more * d)
        for hyp, (*_, n), d in zip(nbest.hyps, rows, directory, strict=True)
    ]
    assert ours == pytest.approx([math.log(10) * total for total in theirs], rel=1e-4)


def test_reads_bytelogs(tmp_path):
    path = file(tmp_path, "NBestList1.0\n(-71234) blue finch\n(0)\n")
    assert detect(path) == "srilm"
    (nbest,) = srilm.read(path)
    assert nbest.hyps[0].scores["am"] == pytest.approx(-71234 * BYTELOG, rel=1e-7)
    assert nbest.hyps[0].scores["am"] == pytest.approx(-71234 * 1024 / 10000.5, rel=1e-15)


def test_reads_word_scores_and_leaves_phones_and_states_aside(tmp_path):
    path = file(tmp_path, DETAILED)
    assert detect(path) == "srilm"
    (nbest,) = srilm.read(path)
    assert [hyp.text for hyp in nbest.hyps] == ["blue finch", ""]
    assert dict(nbest.hyps[0].scores) == pytest.approx(
        {"am": -1000 * BYTELOG, "lm": -200 * BYTELOG}, rel=1e-7
    )


def named(*utterances):
    hyps = (Hypothesis("x", {"am": -1.0, "lm": 0.0}),)
    return [NBest(utt, hyps) for utt in utterances]


def test_directories(tmp_path):
    lists = named("a.b", "b", "c.gz")
    srilm.write(lists, tmp_path / "d")
    names = sorted(child.name for child in (tmp_path / "d").iterdir())
    assert names == ["a.b.gz", "b.gz", "c.gz.gz"]
    assert detect(tmp_path / "d") == "srilm"
    assert list(srilm.read(tmp_path / "d")) == lists
    # whose name does not say the utterance: a directory as well
    srilm.write(lists[:1], tmp_path / "one")
    assert list(srilm.read(tmp_path / "one")) == lists[:1]
    (tmp_path / "d" / "b").write_text("-1 0 1 x\n")
    with pytest.raises(UserError, match=r"d/b.gz: utterance 'b' is also in b; remove"):
        list(srilm.read(tmp_path / "d"))


def test_several_lists_do_not_go_to_standard_output():
    with pytest.raises(UserError, match="one list a file"):
        srilm.write([NBest("a", ()), NBest("b", ())], "-")


PAUSED = (
    "-311.2 -14.9 2 -pau- blue -pau- finch [laughter]\n-320 -20 3 blue fins [laughter]\n-4 -5 0"
    " -pau-\n"
)


@pytest.mark.parametrize(
    "name", ["zed1", "zed1.score", "zed1.gz", "zed1.score.gz", "zed1.score.bz2"]
)
def test_pauses_and_names_of_rescored_lists(tmp_path, name):
    (tmp_path / "d").mkdir()
    content = PAUSED.encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get((tmp_path / name).suffix, bytes)(
        content
    )
    (tmp_path / "d" / name).write_bytes(packed)
    assert detect(tmp_path / "d") == detect(tmp_path / "d" / name) == "srilm"
    (nbest,) = srilm.read(tmp_path / "d")
    assert nbest.utt == "zed1"
    assert [hyp.text for hyp in nbest.hyps] == ["blue finch [laughter]", "blue fins [laughter]", ""]
    srilm.write([nbest], tmp_path / "again" / name)
    with OPENERS.get((tmp_path / name).suffix, open)(tmp_path / "again" / name, "rb") as stream:
        assert stream.readline() == b"-311.2 -14.9 3 blue finch [laughter]\n"


@pytest.mark.parametrize(
    "line",
    [
        *("-311.2 -14.9 2 -pau- blue finch", "-311.2 0 0 blue finch"),
        *("-3 -1 1 ++breath++ blue %hes%", "-3 -1 0 -pau-"),
    ],
)
def test_recognises_lists_whose_pauses_and_noises_are_not_counted(tmp_path, line):
    assert detect(file(tmp_path, line + "\n")) == "srilm"


@pytest.mark.parametrize(
    "line",
    [
        *("-311.2 -14.9 3 blue finch", "-311.2 -14.9 1 blue finch"),
        *("0 0 0 blue", "1 2 0 blue", "0 1 2 0.5"),
    ],
)
def test_does_not_recognise_what_is_counted_otherwise(tmp_path, line):
    assert detect(file(tmp_path, line + "\n"), "kaldi-text") == "kaldi-text"


def test_ids_that_end_as_rescored_lists_do(tmp_path):
    lists = named("a.score", "b", "c.score.gz")
    srilm.write(lists, tmp_path / "d")
    assert list(srilm.read(tmp_path / "d")) == lists
    srilm.write(lists, tmp_path / "d")  # in place of its own
    srilm.write(lists[:1], tmp_path / "a.score")
    assert list(srilm.read(tmp_path / "a.score")) == lists[:1]
