"""Sockeye's N-best lists in JSON."""

import json

import pytest

from lmtools.formats import FORMATS, read
from lmtools.types import Hypothesis, NBest


def write(path, *trees):
    path.write_text("".join(json.dumps(tree) + "\n" for tree in trees))
    return path


def tree(number, texts, scores, **more):
    first = {"sentence_id": number, "translation": texts[0], "score": scores[0]}
    several = {"translations": texts, "scores": scores} if len(texts) > 1 else {}
    return first | several | more


def test_lists_and_what_else_is_said(tmp_path):
    path = write(
        tmp_path / "out",
        tree(1, ["▁blue ▁fin ch", "▁blue"], [[0.5, 9], [1.5, 9]], alignments=[[1], [2]], doc="d"),
        tree(2, ["▁x"], [0.25]),
    )
    assert FORMATS.detect(path) == "sockeye"
    assert read(path, "sockeye:bpe=sentencepiece") == [
        NBest(
            "1",
            (
                Hypothesis("blue finch", {"am": -0.5}, {"alignments": "[1]"}),
                Hypothesis("blue", {"am": -1.5}, {"alignments": "[2]"}),
            ),
            None,
            {"doc": '"d"'},
        ),
        NBest("2", (Hypothesis("x", {"am": -0.25}),)),
    ]


@pytest.mark.parametrize(
    ("lists", "am"),
    [
        ([[0.5, 1.5], [0.25]], [-0.5, -1.5, -0.25]),  # costs rise
        ([[-0.5, -1.5], [-0.25]], [-0.5, -1.5, -0.25]),
        ([[-0.5, 0.5], [3.0]], [0.5, -0.5, -3.0]),  # with a reward, costs below 0
        ([[0.5], [1.5]], [-0.5, -1.5]),
        ([[-0.5], [-1.5]], [-0.5, -1.5]),
        ([[1.0, 1.0]], [-1.0, -1.0]),
    ],
)
def test_costs_are_told_by_their_order_or_else_their_sign(tmp_path, lists, am):
    trees = [tree(n, ["x", "y"][: len(scores)], scores) for n, scores in enumerate(lists)]
    found = read(write(tmp_path / "out", *trees))
    assert [hyp.scores["am"] for nbest in found for hyp in nbest.hyps] == am
