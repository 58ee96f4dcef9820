"""Confusions and their precision, hypotheses without them, and what corrected answers teach."""

import json

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.formats.confusions import Confusion, read_confusions
from lmtools.learning.confusions import estimate, find_errors
from lmtools.types import Hypothesis, NBest


def make_lists(count: int, wrong: float) -> list[NBest]:
    """Answers in which `see`, a share of its times, was `sea`, and other words are right."""
    rng, lists = np.random.default_rng(0), []
    for place in range(count):
        words = [f"w{number}" for number in rng.integers(30, size=4)]
        said = "sea" if rng.random() < wrong else "see"
        heard, ref = " ".join(["the", "see", *words]), " ".join(["the", said, *words])
        hyps = (Hypothesis(heard, {"am": -1.0}), Hypothesis(f"{heard} uh", {"am": -2.0}))
        lists.append(NBest(f"u{place}", hyps, ref))
    return lists


@pytest.mark.parametrize(
    ("heard", "said", "found"),
    [
        ("a x c", "a b c", [(1, 2, "b")]),
        ("a c", "a b c", [(0, 1, "a b")]),
        ("c", "b c", [(0, 1, "b c")]),
        ("a x y c", "a c", [(1, 3, "")]),
        ("x y c d", "p q c e", [(0, 2, "p q"), (3, 4, "e")]),
        ("a b c d", "e f g h", []),
        ("", "a", []),
    ],
)
def test_what_differs(heard, said, found):
    errors = find_errors(heard.split(), said.split())
    assert [(e.begin, e.end, " ".join(e.said)) for e in errors] == found


def test_precision_is_of_lists_that_did_not_teach(tmp_path, capsys):
    pairs = [(("see",), ("sea",))] * 7 + [(("see",), ("see",))] * 3
    pairs += [(("once",), ("ones",))]
    assert estimate(pairs) == [
        Confusion("see", "sea", count=7, of=10, tested=10, right=7),
        Confusion("once", "ones", count=1, of=1),
    ]
    lists = [NBest(f"u{i}", (Hypothesis(" ".join(heard)),), " ".join(said))
             for i, (heard, said) in enumerate(pairs)]  # fmt: skip
    jsonl.write(lists, tmp_path / "n.jsonl")
    out = str(tmp_path / "c.tsv")
    assert main(["confusions", "--nbest", str(tmp_path / "n.jsonl"), "--out", out]) == 0
    assert "2 confusions; tried in 10 places of held-out lists, 70.0% right" in (
        capsys.readouterr().err
    )
    assert read_confusions(out) == estimate(pairs)
    argv = ["network", "undo", "--nbest", str(tmp_path / "n.jsonl"), "--confusions", out]
    assert main([*argv, "--out", str(tmp_path / "more.jsonl")]) == 0
    first = json.loads((tmp_path / "more.jsonl").read_text().splitlines()[0])["hyps"]
    assert [(hyp["text"], round(hyp["scores"]["undone"], 9)) for hyp in first] == [
        ("see", 0.0),
        ("sea", -0.3),
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [("a\tb\n", 1), ("", 1), ("{head}a\tb\t1\n", 2), ("{head}a\tb\t1\t2\t-1\t0\t\n", 2)],
)
def test_other_tables_are_refused(content, line, tmp_path):
    head = "heard\tsaid\tcount\tof\ttested\tright\tprecision\n"
    (tmp_path / "c.tsv").write_text(content.replace("{head}", head))
    with pytest.raises(UserError, match=rf"c\.tsv:{line}: .*; give a file that lmtools confusions"):
        read_confusions(tmp_path / "c.tsv")


@pytest.mark.parametrize("pairs", [False, True])
def test_what_repeats_is_learnt_and_tested_in_order(pairs, tmp_path, capsys):
    lists = make_lists(160, 0.9)
    path = tmp_path / ("c.tsv" if pairs else "n.jsonl")
    if pairs:
        path.write_text("".join(f"{one.hyps[0].text}\t{one.ref}\n" for one in lists))
    else:
        jsonl.write(lists, path)
    assert main(["learn", "--corrections", str(path), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    before = sum("sea" in one.ref for one in lists[80:])
    assert f"learnt from 80 answers, tested on the 80 after them: errors {before} -> " in said
    assert int(said.partition(f"errors {before} -> ")[2].split()[0]) == 80 - before
    assert "warning: that is not surely" not in said
    assert (tmp_path / "out" / "phrases.txt").read_text() == "sea\n"
    known = read_confusions(tmp_path / "out" / "confusions.tsv")
    assert (known[0].heard, known[0].said) == ("see", "sea")
    first = json.loads((tmp_path / "out" / "lists.jsonl").read_text().splitlines()[0])
    assert {"undone", "corrected"} < {*first["hyps"][0]["scores"]} | {"am"}


def test_nothing_to_learn_makes_nothing_worse(tmp_path, capsys):
    jsonl.write(make_lists(160, 0.1), tmp_path / "n.jsonl")
    argv = ["learn", "--corrections", str(tmp_path / "n.jsonl"), "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    said = capsys.readouterr().err
    before, after = said.partition("errors ")[2].split()[0:3:2]
    assert int(after) <= int(before) and "warning: that is not surely better" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\n" * 99, "99 corrected answers are too few to test what they teach"),
        ("a\tb\nc\n", "c.tsv:2: not two columns"),
    ],
)
def test_too_few_or_damaged_corrections_are_refused(content, message, tmp_path, capsys):
    (tmp_path / "c.tsv").write_text(content)
    argv = ["learn", "--corrections", str(tmp_path / "c.tsv"), "--out", str(tmp_path / "out")]
    assert main(argv) == 1
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()
