"""What `bench.py lattice` counts, writes and draws (never how fast it was)."""

import dataclasses
import json
from shlex import split

import pytest
from bench import main
from lattices import random_lattice
from measures.drawing import draw_bench
from measures.lattice import format_lines
from toys import WORDS

from lmtools.formats import lattices
from lmtools.ngram import build
from lmtools.text import Normaliser

WEIGHTS = "am=1,lm=1,ngram=2,causal=2,words=0.5"


@pytest.fixture
def here(tmp_path, monkeypatch, trained, tiny):
    """A directory with lattices with times, and the models' arguments."""
    monkeypatch.chdir(tmp_path)
    drawn = (
        dataclasses.replace(random_lattice(seed, 6, 14, WORDS[:4]), utt=f"u{seed}")
        for seed in range(100)
    )
    timed = [lattice for lattice in drawn if lattice.times is not None and len(lattice.words) > 5][
        :3
    ]
    lattices.write(timed, "l", "slf")
    build([tiny / "train.txt"], 2, tmp_path / "ngram", Normaliser(), kenlm="none")
    return ["--lm", "ngram=ngram", "--lm", f"causal={trained['causal']}", "--weights", WEIGHTS]


def test_rows_cover_models_beams_and_tokens(here, tmp_path, capsys):
    settings = "--by-beam 0,2 --by-tokens 1,3 --repeats 2 --figure b.png"
    out = split(f"--max-ngram-order 3 --out b.json {settings}")
    assert main(["lattice", "l", *here, *out]) == 0
    printed = capsys.readouterr().out
    figures = json.loads((tmp_path / "b.json").read_text())
    kinds = [
        ("whole", None, None),
        ("density", 0, None),
        ("density", 2, None),
        ("tokens", None, 1),
        ("tokens", None, 3),
    ]
    assert [(row["lm"], row["kind"], row["beam"], row["tokens"]) for row in figures["rows"]] == [
        (lm, *kind) for kind in kinds for lm in ("ngram", "causal")
    ]
    read = lattices.read("l")
    whole, best = figures["rows"][0], figures["rows"][2]
    assert (
        whole["arcs"] == sum(len(lattice.words) for lattice in read) > best["arcs"]
        and figures["lattices"] == 3
    )
    for row in figures["rows"]:
        assert len(row["seconds"]) == 2 and row["real_time_factor"] == pytest.approx(
            sum(row["seconds"]) / 2 / figures["speech"]
        )
        assert row["density"] == row["arcs"] / figures["speech"]
    assert (
        figures["rows"][7]["rescored_arcs"]
        <= figures["rows"][9]["rescored_arcs"]
        <= figures["rows"][1]["rescored_arcs"]
    )
    assert figures["order"] == 3 and figures["models"].keys() == {"ngram", "causal"}
    assert (
        printed.splitlines() == list(format_lines(figures))
        and "3 lattices, " in printed
        and "arcs a second, all histories a state" in printed
    )
    drawn = draw_bench(figures)
    assert (tmp_path / "b.png").read_bytes() == drawn and drawn.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--weights", "am=1,ngram=1"],
            "no weight of 'causal'; give --weights, as in --weights am=1,causal=10",
        ),
        (
            ["--weights", "am=1,ngram=1,causal=1,x=1"],
            "no score 'x' in the lattice; give weights to some of: am, lm",
        ),
        (["--lm", "x"], "--lm x: not NAME=DIR"),
        (["--format", "nix"], "nix: no format is called 'nix'"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(here, tmp_path, capsys, arguments, message):
    assert main(["lattice", "l", *here, "--out", "b.json", "--figure", "b.png", *arguments]) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1 and not list(tmp_path.glob("b.*"))


def test_lattices_without_times_or_none_at_all(here, tmp_path, capsys):
    (tmp_path / "plain.plf").write_text("((('a',-1,1),),)\n")
    (tmp_path / "none.plf").write_text("")
    for name, message in (
        ("plain", "the lattices have no times"),
        ("none", "no lattices to measure with; give the recogniser's"),
    ):
        assert main(["lattice", f"{name}.plf", "--format", "plf", *here]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
