"""WER, CER, BLEU and their like of texts and lists, with confidence intervals."""

from collections.abc import Iterable, Mapping

from lmtools.api.files import list_nbests, name_metric
from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import check_text, list_items, list_texts
from lmtools.evaluate.corpus import Evaluation, evaluate
from lmtools.evaluate.nbest import reference
from lmtools.types import NBest

Texts = Mapping[str, str] | Iterable[str] | Iterable[NBest]


@in_keywords()
def measure(refs: Texts, hyps: Texts | None = None, metric: str = "wer") -> Evaluation:
    """Return a metric of hypotheses against references over the whole set: wer, cer, bleu, chrf,
    ter, or one with options, as `bleu:tokenize=zh`.

    Texts are a mapping by utterance, an iterable (joined by place, so that both have as many), or
    N-best lists, of which references and first hypotheses count; without `hyps` both are of the
    lists `refs`. The result's `score` is in percent (BLEU and chrF: 0 to 100), `interval()` its 95%
    confidence interval, `signature` what one must know to compute it again. UserError for a list
    without reference, for hypotheses without, for an utterance that comes twice, and for what is no
    text.
    """
    metric = name_metric(metric)
    given = hold(refs, "refs")
    chosen = given if hyps is None else hold(hyps, "hyps")
    if hyps is None and not holds_lists(given):
        what = "missing" if given else "missing, and refs are empty"
        raise UserError(f"hyps: {what}; only N-best lists hold references and hypotheses")
    refuse_unlike(given, chosen)
    references = by_utterance(given, "refs", reference)
    return evaluate(
        references,
        by_utterance(chosen, "hyps", lambda nbest: nbest.hyps[0].text if nbest.hyps else ""),
        metric,
        "hyps",
    )


def wer(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """Return the word error rate: see `measure`."""
    return measure(refs, hyps, "wer")


def cer(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """Return the character error rate: see `measure`."""
    return measure(refs, hyps, "cer")


def bleu(refs: Texts, hyps: Texts | None = None) -> Evaluation:
    """Corpus BLEU as sacreBLEU computes it: see `measure`."""
    return measure(refs, hyps, "bleu")


def hold(texts: Texts, name: str) -> Mapping | list:
    """Return a mapping, or the items of another iterable; lists are looked at."""
    if isinstance(texts, Mapping):
        return texts
    if isinstance(texts, NBest):
        raise UserError(f"{name}: one list alone; write [nbest]")
    items = list_items(texts, name)
    return list_nbests(items, name) if holds_lists(items) else items


def holds_lists(texts: Mapping | list) -> bool:
    """Return whether the texts are N-best lists."""
    return isinstance(texts, list) and any(isinstance(item, NBest) for item in texts)


def refuse_unlike(refs: Mapping | list, hyps: Mapping | list) -> None:
    """UserError where the sides are joined otherwise, or have other numbers of texts by place."""
    placed = [isinstance(side, list) and not holds_lists(side) for side in (refs, hyps)]
    if placed[0] != placed[1] and refs and hyps:
        raise UserError(
            "refs, hyps: one by utterance, the other a sequence; give both as mappings or lists, or"
            " both as sequences"
        )
    if all(placed) and len(refs) != len(hyps):
        raise UserError(
            f"refs, hyps: {len(refs)} references, {len(hyps)} hypotheses; give one a reference (''"
            " where there is none), or mappings by utterance"
        )


def by_utterance(texts: Mapping | list, name: str, text_of) -> dict:
    """Return the texts by utterance; of lists those of `text_of`, of others by places from 1."""
    if holds_lists(texts):
        return {nbest.utt: text_of(nbest) for nbest in texts}
    if isinstance(texts, Mapping):
        return {utt: check_own(text, f"{name}[{utt!r}]") for utt, text in texts.items()}
    return {str(place + 1): check_own(text, f"{name}[{place}]") for place, text in enumerate(texts)}


def check_own(text, where: str) -> str | tuple[str, ...]:
    """Return a text, or several references of an utterance, of which there is one at least."""
    if where.startswith("refs") and isinstance(text, list | tuple) and text:
        return tuple(list_texts(text, where))
    return check_text(text, where)
