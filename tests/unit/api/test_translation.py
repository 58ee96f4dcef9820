"""Translation models in Python."""

from shlex import split

import numpy as np
import pytest
from toys import sentences
from translators import random_translator

import lmtools
from lmtools.cli import main
from lmtools.formats import jsonl, scores
from lmtools.formats.texts import write_sentences
from lmtools.types import Hypothesis, NBest

SOURCES = sentences(4, 3)
LISTS = [NBest(f"u{n}", tuple(map(Hypothesis, sentences(3, n)))) for n in range(4)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return random_translator(tmp_path_factory.mktemp("lm"))


@pytest.fixture(scope="module")
def lm(directory):
    return lmtools.load(directory, device="cpu", pairs=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_columns_are_those_of_the_command(directory, lm, tmp_path, reverse):
    jsonl.write(LISTS, tmp_path / "n.jsonl")
    write_sentences(SOURCES, tmp_path / "lines")
    command = f"score --lm {directory} --nbest {tmp_path}/n.jsonl --device cpu --cache none"
    command += f" --source-lines {tmp_path}/lines --out {tmp_path}/out" + " --reverse" * reverse
    assert main(split(command)) == 0
    wanted = scores.read(tmp_path / "out")
    by_utterance = {nbest.utt: text for nbest, text in zip(LISTS, SOURCES, strict=True)}
    for sources in (SOURCES, by_utterance):
        table = lm.score_lists(LISTS, sources, reverse)
        assert table.signature == wanted.signature
        for utt, values in wanted.log_prob.items():
            np.testing.assert_array_equal(table.log_prob[utt], values)
    hyps = [hyp.text for nbest in LISTS for hyp in nbest.hyps]
    sides = hyps, [by_utterance[nbest.utt] for nbest in LISTS for _ in nbest.hyps]
    texts, given = sides[:: -1 if reverse else 1]
    flat = np.concatenate([wanted.log_prob[nbest.utt] for nbest in LISTS])
    np.testing.assert_array_equal(lm.score(texts, given), flat)


def test_what_does_not_fit_is_refused(directory, lm, trained):
    with pytest.raises(lmtools.UserError, match="1 sources of 2 texts"):
        lm.score(["the", "king"], ["a"])
    with pytest.raises(lmtools.UserError, match="one text alone"):
        lm.score(["the"], "a")
    with pytest.raises(lmtools.UserError, match="sources: 3 lines for 4 utterances"):
        lm.score_lists(LISTS, SOURCES[:3])
    with pytest.raises(lmtools.UserError, match="sources: 4 lines for 3 utterances"):
        lm.score_lists(LISTS[:3], SOURCES)
    for call in (lm.score, lm.token_scores):
        with pytest.raises(lmtools.UserError, match="a translation model, which reads a source"):
            call(["the"])
    with pytest.raises(lmtools.UserError, match="a translation model, which reads a source"):
        lm.score_lists(LISTS)
    with pytest.raises(lmtools.UserError, match="a translation model, which reads a source"):
        lmtools.load(directory)
    causal = lmtools.load(trained["causal"], device="cpu")
    with pytest.raises(lmtools.UserError, match="not loaded as a translation model"):
        causal.score(["the"], ["a"])
