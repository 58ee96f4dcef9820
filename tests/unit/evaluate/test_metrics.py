import jiwer
import numpy as np
import pytest
import sacrebleu.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmtools.evaluate.metrics import METRICS

sentences = st.lists(
    st.sampled_from(["the", "cat", "sat,", "on", "Mat.", "a-b", "  ", "&amp;", "3.5"]), max_size=12
).map(" ".join)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6)
SACRE = {
    "bleu": sacrebleu.metrics.BLEU,
    "chrf": sacrebleu.metrics.CHRF,
    "ter": sacrebleu.metrics.TER,
}


def summed(name, pairs):
    return sum(METRICS[name].statistics(ref, [hyp])[0] for ref, hyp in pairs)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(SACRE)), corpora)
def test_sacrebleu_gives_the_same_score(name, pairs):
    refs, hyps = zip(*pairs, strict=True)
    theirs = SACRE[name]()
    expected = theirs.corpus_score(list(hyps), [list(refs)]).score
    assert float(METRICS[name].score(summed(name, pairs))) == pytest.approx(
        expected, rel=1e-12, abs=1e-12
    )
    assert str(theirs.get_signature()) in METRICS[name].signature


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=4, max_size=4), min_size=1, max_size=5),
    st.integers(0, 60),
)
def test_vectorised_bleu_is_sacrebleus_for_any_counts(rows, ref_length):
    totals = []
    for row in rows:
        ngrams = [max(0, max(row) + 2 - order) for order in range(4)]
        totals.append([ngrams[0], ref_length, *np.minimum(row, ngrams), *ngrams])
    expected = [METRICS["bleu"].theirs(list(map(int, total))).score for total in totals]
    assert METRICS["bleu"].score(np.array(totals)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


counts = st.integers(0, 40)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(counts, counts, counts), min_size=6, max_size=6), min_size=1, max_size=5
    )
)
def test_vectorised_chrf_is_sacrebleus_for_any_counts(rows):
    totals = [
        [one for hyp, ref, match in row for one in (hyp, ref, min(hyp, ref, match))] for row in rows
    ]
    expected = [METRICS["chrf"].theirs(total).score for total in totals]
    assert METRICS["chrf"].score(np.array(totals)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.lists(st.tuples(counts, st.integers(0, 3)), min_size=1, max_size=5))
def test_vectorised_ter_is_sacrebleus_for_any_counts(totals):
    expected = [METRICS["ter"].theirs(total).score for total in totals]
    assert METRICS["ter"].score(np.array(totals)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(SACRE)), sentences, st.lists(sentences, min_size=1, max_size=4))
def test_gains_are_sacrebleus_sentence_scores(name, ref, hyps):
    theirs = sacrebleu.metrics.BLEU(effective_order=True) if name == "bleu" else SACRE[name]()
    expected = [theirs.sentence_score(hyp, [ref]).score for hyp in hyps]
    sign = -1 if name == "ter" else 1
    assert sign * METRICS[name].gain(METRICS[name].statistics(ref, hyps)) == pytest.approx(
        expected, rel=1e-12, abs=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(corpora)
def test_jiwer_gives_the_same_wer_and_cer(pairs):
    refs, hyps = ([" ".join(text.split()) for text in side] for side in zip(*pairs, strict=True))
    assume(any(refs))
    assert float(METRICS["wer"].score(summed("wer", pairs))) == pytest.approx(
        100 * jiwer.wer(refs, hyps)
    )
    assert float(METRICS["cer"].score(summed("cer", pairs))) == pytest.approx(
        100 * jiwer.cer(refs, hyps)
    )


@pytest.mark.parametrize("name", METRICS)
def test_statistics_have_a_row_a_hypothesis_and_scores_vectorise(name):
    metric = METRICS[name]
    rows = metric.statistics(
        "the cat sat on the mat", ["the cat sat on the mat", "the cat on a mat", ""]
    )
    assert rows.shape == (3, metric.width)
    assert metric.statistics("the cat", []).shape == (0, metric.width)
    scores = metric.score(rows)
    assert scores.shape == (3,)
    assert scores.tolist() == [float(metric.score(row)) for row in rows]
    assert scores[0] == pytest.approx(0 if metric.lower_is_better else 100)
    assert scores[2] == pytest.approx(100 if metric.lower_is_better else 0)
    assert list(np.argsort(-metric.gain(rows))) == [0, 1, 2]
    assert f"metric:{name}" in metric.signature and "lmtools-" in metric.signature


def test_descriptions_give_the_counts():
    rate, bleu = METRICS["wer"], METRICS["bleu"]
    assert (
        rate.describe(rate.statistics("a b c d", ["x b c e e"])[0])
        == "2 sub, 0 del, 1 ins; 4 words"
    )
    assert "BP = 1.000" in bleu.describe(bleu.statistics("a b c d e", ["a b c d e"])[0])
