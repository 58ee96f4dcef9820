"""Real lattices: 3,979 of Spanish telephone speech (Fisher) in Moses' PLF, with the recogniser's
1-best and the lattices' oracle.
"""

import lzma
import re
from pathlib import Path
from shlex import split

import pytest

from lmtools.cli import main
from lmtools.evaluate.corpus import evaluate
from lmtools.formats import kaldi_text
from lmtools.formats.lattices import read, write
from lmtools.lattice.density import add_statistics, statistics
from lmtools.lattice.paths import best, nbest

DATA = Path(__file__).parents[3] / "shared/data/lattice"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there")
WEIGHTS = {"am": 1.0}


def lines(part: str) -> list[str]:
    return lzma.open(DATA / f"fisher-dev.{part}.es.xz", "rt", encoding="utf-8").read().splitlines()


@pytest.fixture(scope="module")
def lattices():
    return read(DATA / "fisher-dev.plf.es.xz", "plf")


def test_sizes_are_those_of_the_text(lattices):
    text = lines("plf")
    size = add_statistics(map(statistics, lattices))
    arcs = [len(re.findall(r"\('(?:[^'\\]|\\.)*', ", line)) for line in text]
    assert size.lattices == len(text) == 3979
    assert [len(lattice.words) for lattice in lattices] == arcs and size.arcs == sum(
        arcs
    ) == 122_139


def test_written_back_byte_for_byte(lattices, tmp_path):
    write(lattices, tmp_path / "back.plf", "plf")
    assert (tmp_path / "back.plf").read_text().splitlines() == lines("plf")


def test_best_paths_are_the_recognisers(lattices):
    """The 1-best file is the best path but for 42 lines; both WERs are 32.1."""
    chosen = [" ".join(best(lattice, WEIGHTS).words) for lattice in lattices]
    asr, oracle = (dict(enumerate(lines(part))) for part in ("asr", "oracle"))
    rates = [evaluate(oracle, hyps, "wer").score for hyps in (dict(enumerate(chosen)), asr)]
    assert rates == pytest.approx([32.14, 32.16], abs=0.005)
    assert (
        sum(mine != theirs.strip() for mine, theirs in zip(chosen, asr.values(), strict=True)) == 42
    )


def test_lists_are_in_order_and_distinct(lattices):
    for lattice in lattices:
        paths = nbest(lattice, WEIGHTS, 10)
        scores = [path.score for path in paths]
        assert scores == sorted(scores, reverse=True) and len(
            {path.words for path in paths}
        ) == len(paths)


def test_ngram_rescoring_of_all(tmp_path, capsys):
    """With an LM of every second line of the 1-best text; the other lines are judged."""
    (tmp_path / "lm.txt").write_text("\n".join(lines("asr")[::2]) + "\n")
    assert main(split(f"ngram --text {tmp_path}/lm.txt --order 3 --out {tmp_path}/lm")) == 0
    source = [str(DATA / "fisher-dev.plf.es.xz"), "--format", "plf"]
    command = [
        "lattice",
        "rescore",
        *source,
        "--lm",
        f"new={tmp_path / 'lm'}",
        *split("--weights am=1,new=0.2 --text-out"),
    ]
    assert (
        main([*command, str(tmp_path / "chosen.txt"), "--report", str(tmp_path / "report.json")])
        == 0
    )
    chosen = kaldi_text.read(tmp_path / "chosen.txt")
    assert len(chosen) == 3979 and "122,139 arcs" in capsys.readouterr().err
    judged = {
        str(number): text for number, text in enumerate(lines("oracle"), 1) if number % 2 == 0
    }
    first = {str(number): text for number, text in enumerate(lines("asr"), 1)}
    rates = [
        evaluate(judged, {utt: hyps[utt] for utt in judged}, "wer").score
        for hyps in (first, chosen)
    ]
    assert rates[1] < rates[0]
