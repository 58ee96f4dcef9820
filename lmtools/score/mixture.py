"""Linear interpolation of language models: the perplexity of a text under sum_i w_i p_i(token |
those before), with given weights or with those that are best on another text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.batching import prepare_distinct
from lmtools.errors import UserError
from lmtools.ngram.interpolation import complete_weights, tune_mixture
from lmtools.score.base import Scorer
from lmtools.score.compute import score_all
from lmtools.score.ppl import describe_rules, summarise
from lmtools.score.run import ScoreOptions, TextScores, refuse_not_finite

MIXED = "log p is that of the weighted mean of the models' probabilities, token by token"


def mixture_perplexity(
    texts: Sequence[str],
    options: ScoreOptions,
    lms: Sequence[str],
    weights: Sequence[float] | None = None,
    held_out: Sequence[str] = (),
) -> dict:
    """As `perplexity`, of the mixture of `lms` under `options`, with `mixture`: each one's `lm`,
    `weight`, `subword_ppl`, `word_ppl` and `signature`.

    `weights` as `complete_weights` takes them; None: those that make the text `held_out` most
    probable, of which `held_out` has perplexities then. Needs no cache, and computes in this
    process. UserError for models that do not predict the same tokens from the left.
    """
    if weights is not None:
        weights = complete_weights(weights, lms)
    scorers = [replace(options, lm=lm).load() for lm in lms]
    check_same_tokens(scorers, lms)
    tuned = {}
    if weights is None:
        tokens = JointScores.of(held_out, scorers, lms)
        weights = tune_mixture(tokens.logs)
        told = summarise(held_out, scorers[0], tokens.mixed(weights))
        names = ("sentences", "words", "tokens", "subword_ppl", "word_ppl")
        tuned = {"held_out": {name: told[name] for name in names}}
    tokens = JointScores.of(texts, scorers, lms)
    parts = [summarise(texts, scorers[0], tokens.mixed(one)) for one in np.eye(len(lms))]
    rules = describe_rules("tokens", "perplexity", options.oov_penalty)
    return {
        "lm": " + ".join(lms), "kind": "perplexity",
        **summarise(texts, scorers[0], tokens.mixed(weights)),
        "rules": f"{rules}; {MIXED}", "signature": describe_mixture(scorers, weights),
        "mixture": [
            {
                "lm": lm, "weight": float(weight), "subword_ppl": part["subword_ppl"],
                "word_ppl": part["word_ppl"], "signature": scorer.signature,
            }
            for lm, weight, part, scorer in zip(lms, weights, parts, scorers, strict=True)
        ],
        **tuned,
    }  # fmt: skip


@dataclass(frozen=True)
class JointScores:
    """log p of each token and end of sentence of some texts in a row under each of P models, `logs`
    (P, N); where each text ends there, `ends` (texts,), and how many of its tokens are `unknown`
    (texts,).
    """

    logs: np.ndarray
    ends: np.ndarray
    unknown: np.ndarray

    @classmethod
    def of(
        cls, texts: Sequence[str], scorers: Sequence[Scorer], lms: Sequence[str]
    ) -> "JointScores":
        """Those of `texts` under `lms`; unknown tokens are those of the first."""
        rows = [score_tokens(texts, scorer, lm) for scorer, lm in zip(scorers, lms, strict=True)]
        ends = [np.cumsum([len(part) for part in row]) for row in rows]
        for own, lm in zip(ends, lms, strict=True):
            if not np.array_equal(own, ends[0]):
                raise UserError(f"{lm}: cuts the text otherwise than {lms[0]}; use one vocabulary")
        unknown = [int(scorers[0].unknown(one).sum()) for one in scorers[0].prepare(texts)]
        return cls(np.stack([np.concatenate(row) for row in rows]), ends[0], np.array(unknown))

    def mixed(self, weights: np.ndarray) -> TextScores:
        """The scores of the texts under the mixture with `weights` (P,)."""
        with np.errstate(divide="ignore"):
            values = np.logaddexp.reduce(np.log(weights)[:, None] + self.logs)
        sums = np.array([part.sum() for part in np.split(values, self.ends[:-1])])
        return TextScores(sums, np.diff(self.ends, prepend=0), self.unknown, "perplexity", {})


def score_tokens(texts: Sequence[str], scorer: Scorer, lm: str) -> list[np.ndarray]:
    """log p of the tokens and the end of each text."""
    sentences, which = prepare_distinct(texts, scorer.prepare)
    found: dict[int, np.ndarray] = {}
    for indices, made in score_all(scorer, sentences):
        found |= zip(indices, made, strict=True)
    refuse_not_finite([found[i].sum() for i in range(len(sentences))], sentences, lm)
    return [found[i] for i in which.tolist()]


def check_same_tokens(scorers: Sequence[Scorer], lms: Sequence[str]) -> None:
    """UserError unless all predict the tokens of one vocabulary from those before them.

    A word outside one vocabulary only, or half a word, has no probability under the other model, so
    that sums of weighted probabilities would be of nothing. Pseudo-likelihoods are none of a text.
    """
    for scorer, lm in zip(scorers, lms, strict=True):
        if scorer.kind != "perplexity":
            raise UserError(
                f"{lm}: gives a {scorer.kind}, which cannot be mixed; give models that predict from"
                " the left alone"
            )
        if scorer.subword is None:
            raise UserError(
                f"{lm}: does not say which tokens it predicts, so that it cannot be mixed; estimate"
                " it with lmtools ngram --subword DIR --unk, DIR being another model's vocabulary"
            )
        if scorer.subword.hash != scorers[0].subword.hash:
            raise UserError(
                f"{lm}: predicts other tokens than {lms[0]} ({scorer.subword.size:,} and"
                f" {scorers[0].subword.size:,}), so that they cannot be mixed; use one vocabulary:"
                " lmtools ngram --subword DIR --unk"
            )


def describe_mixture(scorers: Sequence[Scorer], weights: Sequence[float]) -> dict[str, str]:
    """What a mixture is: its models' hashes with their weights, and the vocabulary."""
    model = "+".join(
        f"{weight:g}*{scorer.signature['model']}"
        for weight, scorer in zip(weights, scorers, strict=True)
    )
    signature = scorers[0].signature
    vocabulary = scorers[0].subword.hash[:16]
    more = {name: signature[name] for name in ("version", "oov") if name in signature}
    return {"lm": "mixture", "model": model, "vocabulary": vocabulary, **more}
