"""Scores of N-best lists as a ScoreTable, and perplexity of texts."""

from collections.abc import Sequence

import numpy as np

from lmtools.score.texts import Options, TextScores, score_texts
from lmtools.types import NBest, ScoreTable


def score_nbest(nbests: Sequence[NBest], options: Options) -> tuple[ScoreTable, TextScores]:
    """The ScoreTable of `nbests`, and the same scores as one flat array over all hypotheses."""
    flat = score_texts([hyp.text for nbest in nbests for hyp in nbest.hyps], options.load(), options)
    bounds = np.cumsum([len(nbest.hyps) for nbest in nbests])[:-1]
    names = [nbest.utt for nbest in nbests]
    log_prob, tokens = (dict(zip(names, np.split(column, bounds), strict=True)) for column in (flat.log_prob, flat.tokens))
    return ScoreTable(log_prob, tokens, flat.signature), flat


RULES = (
    "natural log; the end of sentence is predicted and counted; unknown {unit} count with the model's unknown-token probability; "
    "words are those between spaces after the model's normalisation of the text"
)


def perplexity(texts: Sequence[str], options: Options) -> dict:
    """Perplexities of `texts` (one a sentence, at least one) under stated rules.

    subword_ppl = exp(-log p / tokens), word_ppl = exp(-log p / (words + sentences)): only the latter compares models of different
    vocabularies. Over sentences: mean and median of exp(-log p(s) / tokens(s)), as in Table 7 of the T-TA paper.
    """
    scorer = options.load()
    scores = score_texts(texts, scorer, options)
    normalised = [scorer.normalise(text) for text in texts]
    log_prob, words = float(scores.log_prob.sum()), sum(len(text.split()) for text in normalised)
    characters = sum(len(text) + 1 for text in normalised)  # the end of line is a character
    per_sentence = np.exp(-scores.log_prob / scores.tokens)
    return {
        "lm": options.lm, "kind": scores.kind, "sentences": len(texts), "words": words, "tokens": int(scores.tokens.sum()),
        "oov": int(scores.unknown.sum()), "log_prob": log_prob,
        "subword_ppl": float(np.exp(-log_prob / scores.tokens.sum())),
        "word_ppl": float(np.exp(-log_prob / (words + len(texts)))),
        "bits_per_char": -log_prob / characters / float(np.log(2)),
        "sentence_ppl_mean": float(per_sentence.mean()), "sentence_ppl_median": float(np.median(per_sentence)),
        "rules": RULES.format(unit="words" if scores.signature["lm"] == "ngram" else "subwords"),
        "signature": scores.signature,
    }  # fmt: skip
