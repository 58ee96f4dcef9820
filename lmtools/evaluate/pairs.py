"""A metric of all pairs of texts at once: how good each text would be if another one were the
reference.
"""

from collections.abc import Callable, Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from lmtools.evaluate.edits import number_units
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.sacre import BLEU_ORDER, CHRF_ORDER, Sacre

BLOCK = 1 << 22  # counts of n-grams held at once


def pair_gains(metric: str, texts: Sequence[str], refs: Sequence[int]) -> np.ndarray:
    """Return the quality of each text with text refs[j] as its reference, (texts, refs):
    METRICS[metric]'s `gain`, minus errors for WER and CER, percent for BLEU and chrF, minus percent
    for TER.
    """
    measure = METRICS[metric]
    name = metric if metric.startswith("chrf:") else metric.partition(":")[0]
    return PAIRS.get(name, one_by_one)(measure, texts, np.asarray(refs, dtype=np.int64))


def sentence_signature(metric: str) -> str:
    """Return the signature at sentence level, where BLEU has sacrebleu's effective order."""
    return METRICS[metric].signature.replace("eff:no", "eff:yes")


def one_by_one(measure: Sacre, texts: Sequence[str], refs: np.ndarray) -> np.ndarray:
    """Return the gains of a metric that has no faster way: a reference after the other."""
    return np.stack([measure.gain(measure.statistics(texts[ref], texts)) for ref in refs], axis=1)


def edits(measure: ErrorRate, texts: Sequence[str], refs: np.ndarray) -> np.ndarray:
    """Return minus the edit distances in words or characters."""
    ids: dict[str, int] = {}
    units = [number_units(measure.split(text), ids) for text in texts]
    return 0.0 - cdist(
        units, [units[ref] for ref in refs], scorer=Levenshtein.distance, dtype=np.int64
    )


def bleu(measure: Sacre, texts: Sequence[str], refs: np.ndarray) -> np.ndarray:
    """Return sentence-level BLEU; each text is tokenised once."""
    ids: dict[str, int] = {}
    tokens = [number_units(measure.tokenise(text), ids) for text in texts]
    ngrams, shared = overlaps(tokens, refs, BLEU_ORDER)
    # (texts, refs, 1) each
    lengths = np.broadcast_arrays(ngrams[:, None, :1], ngrams[None, refs, :1])
    return measure.gain(
        np.concatenate([*lengths, shared, np.broadcast_to(ngrams[:, None], shared.shape)], axis=-1)
    )


def chrf(measure: Sacre, texts: Sequence[str], refs: np.ndarray) -> np.ndarray:
    """Return sentence-level chrF, white space left out."""
    units = [
        np.frombuffer("".join(text.split()).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        for text in texts
    ]
    ngrams, shared = overlaps(units, refs, CHRF_ORDER)
    hyp, ref = np.broadcast_arrays(ngrams[:, None], ngrams[None, refs])  # (texts, refs, 6) each
    return measure.gain(
        np.stack([hyp, ref, shared], axis=-1).reshape(*shared.shape[:2], measure.width)
    )


def overlaps(
    sequences: Sequence[Sequence[int]], refs: np.ndarray, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Count n-grams of each sequence (sequences, order) and those shared with sequence refs[j], as
    often as both have them (sequences, refs, order); floats, n from 1.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    units = np.concatenate([np.asarray(sequence, dtype=np.int64) for sequence in sequences])
    owner, ends = (
        np.repeat(values, lengths) for values in (np.arange(len(sequences)), np.cumsum(lengths))
    )
    starts, grams = np.arange(len(units)), np.zeros(len(units), dtype=np.int64)
    base = units.max(initial=0) + 1
    shared = np.zeros((len(sequences), len(refs), order))
    for n in range(order):
        fits = starts + n < ends[starts]
        starts = starts[fits]
        # an n-gram: the one before and a unit more
        grams = np.unique(grams[fits] * base + units[starts + n], return_inverse=True)[1]
        shared[..., n] = common(owner[starts], grams, len(sequences), refs)
    return np.maximum(lengths[:, None] - np.arange(order), 0.0), shared


def common(owner: np.ndarray, grams: np.ndarray, sequences: int, refs: np.ndarray) -> np.ndarray:
    """Return sums (sequences, refs) over n-grams of the smaller of both counts, of grams[i] in
    sequence owner[i]: a product of 0-1 matrices for each level that both reach.
    """
    total = np.zeros((sequences, len(refs)))
    kinds = grams.max(initial=-1) + 1
    width = max(1, min(kinds, BLOCK // sequences))
    for begin in range(0, kinds, width):
        inside = (grams >= begin) & (grams < begin + width)
        counts = np.bincount(
            owner[inside] * width + grams[inside] - begin, minlength=sequences * width
        ).reshape(sequences, width)
        for level in range(1, counts.max() + 1):
            counts = counts[:, counts.max(0) >= level]
            # sums of ones are exact in it up to 2**24
            reached = (counts >= level).astype(np.float32)
            # not @: for so little work BLAS's threads wait more than they do
            total += np.einsum("sg,rg->sr", reached, reached[refs])
    return total


PAIRS: dict[str, Callable[..., np.ndarray]] = {
    "wer": edits,
    "cer": edits,
    "mer": edits,
    "bleu": bleu,
    "chrf": chrf,
}
