"""WER, CER, BLEU and their like of texts and lists, with confidence intervals."""

from collections.abc import Mapping, Sequence

from lmtools.errors import UserError
from lmtools.evaluate import METRICS, Evaluation, evaluate, reference
from lmtools.rescoring.weights import refuse_other
from lmtools.types import NBest

Texts = Mapping[str, str] | Sequence[str] | Sequence[NBest]


def measure(refs: Texts, hyps: Texts | None = None, metric: str = "wer") -> Evaluation:
    """A metric (wer, cer, bleu, chrf, ter) of hypotheses against references over the whole set.

    Texts are a mapping by utterance, a sequence (joined by place), or N-best lists, of which
    references and first hypotheses count; without `hyps` both are of the lists `refs`. The result's
    `score` is in percent (BLEU and chrF: 0 to 100), `interval()` its 95% confidence interval,
    `signature` what one must know to compute it again. UserError for a list without reference, and
    for hypotheses without.
    """
    refuse_other("metric", metric, METRICS)
    chosen = refs if hyps is None else hyps
    if hyps is None and not holds_lists(refs):
        raise UserError("hyps: missing; only N-best lists hold references and hypotheses")
    return evaluate(by_utterance(refs, reference), by_utterance(chosen, first_text), metric)


def wer(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """The word error rate: see `measure`."""
    return measure(refs, hyps, "wer")


def cer(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """The character error rate: see `measure`."""
    return measure(refs, hyps, "cer")


def bleu(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """Corpus BLEU as sacreBLEU computes it: see `measure`."""
    return measure(refs, hyps, "bleu")


def holds_lists(texts: Texts) -> bool:
    """Whether these are N-best lists; UserError for a single text."""
    if isinstance(texts, str | NBest):
        raise UserError("one text or list alone: give a sequence of them, or a mapping by id")
    return not isinstance(texts, Mapping) and any(isinstance(one, NBest) for one in texts)


def by_utterance(texts: Texts, text_of) -> dict[str, str]:
    """The texts by utterance; of lists what `text_of` says, of others their places from 1."""
    if holds_lists(texts):
        return {nbest.utt: text_of(nbest) for nbest in texts}
    if isinstance(texts, Mapping):
        return dict(texts)
    return {str(place): text for place, text in enumerate(texts, 1)}


def first_text(nbest: NBest) -> str:
    """The text of the first hypothesis, '' of an empty list."""
    return nbest.hyps[0].text if nbest.hyps else ""
