"""sacrebleu's metrics over its own statistics: their scores as array operations, so that thousands
of sums are scored at once.

sacrebleu has no public functions for statistics, so this module, and no other, calls its private
ones; setup.py bounds its version, and tests compare what comes out with sacrebleu's public scores.
"""

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.chance import ALIKE, Tested, limit_p
from lmtools.types import EMPTY
from lmtools.version import __version__

# Those of sacrebleu without `spm`, its former name of flores101; the first is its default.
TOKENISERS = (
    *("13a", "zh", "char", "intl", "none", "ja-mecab", "ko-mecab"),
    *("flores101", "flores200", "spBLEU-1K"),
)
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}  # of the package, which these tokenisers need
BLEU_ORDER, CHRF_ORDER = 4, 6
CHRF_FACTOR = 4  # beta squared: recall counts so many times as much as precision


def load_metric(name: str, settings: Mapping):
    """Return sacrebleu's metric `name`; UserError if its tokeniser lacks a package or a model."""
    import sacrebleu.metrics

    tokeniser = settings.get("tokenize")
    refuse_missing_model(tokeniser)
    try:
        return getattr(sacrebleu.metrics, name)(**settings)
    except (ImportError, RuntimeError, OSError, AssertionError) as error:
        extra = EXTRAS.get(tokeniser)
        cause = next(filter(None, str(error).splitlines()), type(error).__name__)
        remedy = f"pip install 'sacrebleu[{extra}]'" if extra else "fetch its model again"
        raise UserError(
            f"sacreBLEU's tokeniser {tokeniser}: {cause.strip(' .')}; {remedy}"
        ) from None


def refuse_missing_model(tokeniser: str | None) -> None:
    """Raise UserError where a SentencePiece model of sacrebleu is not on this disk."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if tokeniser not in SPM_MODELS:
        return
    url = SPM_MODELS[tokeniser]["url"]
    path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
    if not os.path.exists(path):
        fetch = f"import sacrebleu; sacrebleu.BLEU(tokenize={tokeniser!r})"
        raise UserError(
            f"{path}: the model of sacreBLEU's tokeniser {tokeniser} is not there; fetch it where"
            f' there is a network: python -c "{fetch}"'
        )


@dataclass(frozen=True)
class SacrePaired(Tested):
    """sacrebleu's paired bootstrap; the first's 95% interval is `mean` +- `half_width`, None where
    it is undefined, as `p` is; `sign_p`: of the exact sign test of so many `units`.
    """

    score: float
    against: float
    difference: float
    mean: float
    half_width: float | None
    p: float | None
    resamples: int
    seed: int | None
    signature: str
    units: int
    sign_p: float


@dataclass(frozen=True)
class Sacre:
    """A sacrebleu metric; `name` is its class in sacrebleu.metrics, `settings` what that takes
    beside its defaults, `corpus_score` its score from summed statistics.

    `sentence_score` is the score of statistics of single sentences where that is another. A missing
    hypothesis counts as an empty one. `choices`: option -> value, the default first -> settings.
    `unit`: what it counts.
    """

    title: str
    name: str
    width: int
    corpus_score: Callable[[np.ndarray], np.ndarray]
    sentence_score: Callable[[np.ndarray], np.ndarray] | None = None
    lower_is_better: bool = False
    settings: Mapping = field(default_factory=lambda: EMPTY, hash=False)
    choices: Mapping[str, Mapping[str, Mapping]] = field(default_factory=lambda: EMPTY, hash=False)
    unit: str = "tokens"

    @cached_property
    def corpus(self):
        """Sacrebleu's object for corpus scores, imported when first needed."""
        metric = load_metric(self.name, self.settings)
        metric.num_refs = 1
        return metric

    def change(self, settings: Mapping) -> "Sacre":
        """Return the metric with other options; UserError for what sacrebleu would ignore."""
        if settings.get("asian_support") and not settings.get("normalized"):
            raise UserError("ter: asian=yes does nothing alone; write ter:normalized=yes,asian=yes")
        words = settings.get("word_order", 0)
        score = self.sentence_score if settings.get("effective_order") else self.corpus_score
        return replace(
            self,
            settings=settings,
            title=self.title + "+" * words,  # chrF++
            width=self.width + 3 * words,
            corpus_score=score,
        )

    def statistics(self, ref: str | Sequence[str], hyps: Sequence[str]) -> np.ndarray:
        """Return sacrebleu's statistics (hypotheses, width), against one reference or several."""
        metric = self.corpus
        reference = metric._cache_references(
            [[text] for text in ([ref] if isinstance(ref, str) else ref)]
        )[0]
        rows = {
            hyp: metric._compute_segment_statistics(metric._preprocess_segment(hyp), reference)
            for hyp in dict.fromkeys(hyps)
        }
        return np.array([rows[hyp] for hyp in hyps], dtype=np.float64).reshape(-1, self.width)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """Return the metric (...,) from summed statistics (..., width), equal to sacrebleu's."""
        return self.corpus_score(np.asarray(totals, dtype=np.float64))

    def length(self, totals: np.ndarray) -> np.ndarray:
        """Return the units of references (...,), the second of all three metrics' statistics."""
        return totals[..., 1]

    def gain(self, statistics: np.ndarray) -> np.ndarray:
        """Return sentence-level quality (...,) from statistics (..., width), higher is better."""
        score = (self.sentence_score or self.corpus_score)(statistics)
        return -score if self.lower_is_better else score

    def cap(self, statistics: np.ndarray) -> np.ndarray:
        """Return statistics in which no hypothesis has more TER edits than reference words."""
        if not self.lower_is_better:
            return statistics
        edits, length = np.moveaxis(statistics, -1, 0)
        return np.stack([np.minimum(edits, np.maximum(length, 1)), length], axis=-1)

    def tokenise(self, text: str) -> list[str]:
        return self.corpus._preprocess_segment(text).split()

    def theirs(self, total: np.ndarray):
        """Return sacrebleu's own score object of summed statistics (width,)."""
        return self.corpus._compute_score_from_stats(np.asarray(total).tolist())

    def describe(self, total: np.ndarray) -> str:
        """Return sacrebleu's own account of a BLEU score; '' for the others, which have none."""
        return self.theirs(total)._verbose

    def paired_bootstrap(self, first: np.ndarray, second: np.ndarray) -> SacrePaired:
        """Return sacrebleu's own paired bootstrap, two-sided, of two systems' statistics
        (utterances, width); the second is its baseline.

        As `sacrebleu --paired-bs` computes it, with its seed (SACREBLEU_SEED, else 12345) and
        resamples (1,000), where `limit_p` permits it. Only systems of the same statistics get p = 1
        here: there sacrebleu gives its smallest p.
        """
        from sacrebleu.significance import PairedTest

        known = copy.copy(self.corpus)
        # they are given in place of texts
        known._extract_corpus_statistics = lambda statistics, references: statistics
        systems = [("second", second), ("first", first)]
        test = PairedTest(systems, {self.name: known}, None, test_type="bs")
        signatures, results = test()
        ((name, signature),) = signatures.items()
        against, result = results[name]
        rows, own = np.hstack([first, second]), self.gain(first) - self.gain(second)
        alike = np.array_equal(first, second) or not np.ptp(rows, axis=0).any()
        p, sign_p = limit_p(float(result.p_value), own, alike=alike)
        figures = result.score, against.score, result.score - against.score, result.mean
        half_width = float(result.ci) if len(first) > 1 and result.ci > ALIKE else None
        return SacrePaired(
            *map(float, figures), half_width=half_width, p=p, sign_p=sign_p, units=len(first),
            resamples=test.n_samples, seed=test._seed, signature=self.signed(signature),
        )  # fmt: skip

    @property
    def signature(self) -> str:
        """Return the rules and the version by which the figure can be computed again."""
        return self.signed(self.corpus.get_signature())

    def signed(self, signature) -> str:
        """Return sacrebleu's signature with our version and what missing hypotheses are."""
        return f"metric:{self.title.lower()}|{signature}|missing:empty|by:lmtools-{__version__}"


def bleu(totals: np.ndarray) -> np.ndarray:
    """Return BLEU (...,) from (..., 10): both lengths, 4 matches, 4 totals; 0 where an order has no
    n-gram. NIST smoothing (method 3 of Chen and Cherry 2014).
    """
    logs, penalty = bleu_parts(totals)
    defined = totals[..., 2 + BLEU_ORDER :].all(-1) & totals[..., 2 : 2 + BLEU_ORDER].any(-1)
    return np.where(defined, penalty * np.exp(logs.sum(-1) / BLEU_ORDER), 0)


def sentence_bleu(totals: np.ndarray) -> np.ndarray:
    """Return BLEU (...,) over the orders a sentence is long enough for (effective order)."""
    logs, penalty = bleu_parts(totals)
    matches, orders = totals[..., 2 : 2 + BLEU_ORDER], (totals[..., 2 + BLEU_ORDER :] > 0).sum(-1)
    return np.where(matches.any(-1), penalty * np.exp(logs.sum(-1) / np.maximum(orders, 1)), 0)


def bleu_parts(totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log precisions in percent (..., 4), 0 without n-grams, and brevity penalty (...,)."""
    hyp, ref = totals[..., 0], totals[..., 1]
    matches, ngrams = totals[..., 2 : 2 + BLEU_ORDER], totals[..., 2 + BLEU_ORDER :]
    smooth = 0.5 ** np.cumsum(matches == 0, axis=-1)
    logs = np.log(100 * np.where(matches > 0, matches, smooth) / np.maximum(ngrams, 1))
    return np.where(ngrams > 0, logs, 0), np.where(
        hyp < ref, np.exp(1 - ref / np.maximum(hyp, 1)), 1
    )


def chrf(totals: np.ndarray) -> np.ndarray:
    """Return chrF2 (...,) from statistics (..., 18), chrF2++ from (..., 24): n-grams of both sides
    and matches, of 6 orders and 2 of words, with sacrebleu's effective order.
    """
    # (..., orders) each
    hyp, ref, matches = np.moveaxis(
        totals.reshape(*totals.shape[:-1], totals.shape[-1] // 3, 3), -1, 0
    )
    both = (hyp > 0) & (ref > 0)
    orders = np.maximum(both.sum(-1), 1)
    precision, recall = (
        np.where(both, matches / np.maximum(count, 1), 0).sum(-1) / orders for count in (hyp, ref)
    )
    weighted = CHRF_FACTOR * precision + recall
    return 100 * (1 + CHRF_FACTOR) * precision * recall / np.where(weighted > 0, weighted, 1)


def ter(totals: np.ndarray) -> np.ndarray:
    """Return TER (...,) in percent from edits and reference length (..., 2)."""
    edits, length = totals[..., 0], totals[..., 1]
    return 100 * np.where(length > 0, edits / np.where(length > 0, length, 1), edits > 0)
