"""Scores of an experiment against jiwer and brute force."""

import jiwer
import numpy as np
import pytest
from unit.report.conftest import collect_rescoring

from lmtools.evaluate.edits import align
from lmtools.formats import kaldi_text
from lmtools.report.measure import LENGTHS
from lmtools.report.write import browser_data, make_tables
from lmtools.types import Hypothesis


def wer(pairs) -> float:
    """jiwer's WER in per cent of pairs, with errors of empty references added."""
    spoken = [(ref, hyp) for ref, hyp in pairs if ref]
    counts = jiwer.process_words([ref for ref, _ in spoken], [hyp for _, hyp in spoken])
    extra = sum(len(hyp.split()) for ref, hyp in pairs if not ref)
    words = sum(len(ref.split()) for ref, _ in pairs)
    return 100 * (counts.substitutions + counts.deletions + counts.insertions + extra) / words


@pytest.fixture(scope="module")
def measured(exp):
    return collect_rescoring(exp).lists.sets


def test_scores_are_jiwers(exp, measured):
    for one in measured:
        refs = kaldi_text.read(exp.parent / "data" / one.sample.name / "text")
        for name in ("ngram", "all"):
            hyps = kaldi_text.read(exp / "rescore" / name / f"{one.sample.name}.txt")
            assert one.results[name].score == pytest.approx(
                wer([(refs[utt], hyps[utt]) for utt in refs])
            )
        first = [
            (nbest.ref, nbest.hyps[0].text if nbest.hyps else "") for nbest in one.sample.nbests
        ]
        assert one.results["@first"].score == pytest.approx(wer(first))


def test_scores_by_length_are_jiwers(measured):
    one = measured[1]
    for (low, high), value in zip(LENGTHS, one.by_length("tta"), strict=True):
        texts = one.results["tta"].texts
        pairs = [
            (ref, texts[utt])
            for utt, ref in one.sample.refs.items()
            if low <= len(ref.split()) <= (10**6 if high is None else high)
        ]
        assert (value is None) == (sum(len(ref.split()) for ref, _ in pairs) == 0)
        if value is not None:
            assert value == pytest.approx(wer(pairs))


def test_oracle_is_the_best_by_brute_force(measured):
    for one in measured:
        fewest = [
            min(
                (wer([("x " + n.ref, "x " + h.text)]) * (1 + len(n.ref.split())) for h in n.hyps),
                default=0,
            )
            for n in one.sample.nbests
        ]
        words = sum(len(ref.split()) for ref in one.sample.refs.values())
        assert one.results["@oracle"].score == pytest.approx(sum(fewest) / words)
        assert one.oracle[-1] == pytest.approx(one.results["@oracle"].score)
        assert one.oracle[0] == pytest.approx(one.results["@first"].score)
        assert (np.diff(one.oracle) <= 1e-9).all()


def test_significance_only_where_weights_were_not_tuned(measured):
    dev, test = measured
    assert all(result.bootstrap is None for result in dev.results.values())
    assert all(result.bootstrap and result.pairs for result in test.results.values())
    assert test.results["@first"].bootstrap.p == 1
    assert test.results["@oracle"].bootstrap.difference < 0


def test_a_hypothesis_is_aligned_once(exp, monkeypatch):
    """Whatever chose it, and for whatever its alignment is wanted."""
    seen = []
    monkeypatch.setattr(
        "lmtools.evaluate.metrics.align",
        lambda ref, hyp: seen.append((ref, hyp)) or align(ref, hyp),
    )
    experiment = collect_rescoring(exp)
    make_tables(experiment)
    browser_data(experiment.browsed)
    pairs = {
        (nbest.utt, nbest.ref, hyp.text)
        for sample in experiment.lists.samples
        for nbest in sample.nbests
        for hyp in (nbest.hyps or (Hypothesis(""),))
    }
    assert len(seen) == len(pairs)
