"""Perplexity of texts, with the rules by which it is counted."""

from collections.abc import Sequence

import numpy as np

from lmtools.batching import plan_batches
from lmtools.score.base import Scorer
from lmtools.score.carried import carried_texts
from lmtools.score.compute import one_thread
from lmtools.score.run import ScoreOptions, TextScores, score_texts
from lmtools.score.scorers import NeuralScorer

# texts whose normalisers are looked at: their scores may be known already, and log Z costs a pass
# of its own
SAMPLE = 300
RULES = (
    "natural log; the end of sentence is predicted and counted; unknown {unit} count with the"
    " model's unknown-token probability{less}; words are those between spaces after the model's"
    " normalisation of the text"
)
CARRIED = "a line is read with the state that the lines before it left"
BOTH = (
    "log p is the mean of that from the left, with the end of sentence, and that from the right,"
    " with its beginning"
)


def perplexity(texts: Sequence[str], options: ScoreOptions, carry: bool = False) -> dict:
    """Perplexities of `texts` (one a sentence, at least one) under stated rules.

    subword_ppl = exp(-log p / tokens), word_ppl = exp(-log p / (words + sentences)): only the
    latter compares models of different vocabularies. Over sentences: mean and median of exp(-log
    p(s) / tokens(s)), as in Table 7 of the T-TA paper. For neural models of ours `criterion`, and
    `log_normaliser`: mean, sd, min, max over tokens of the log Z (nats) that normalised the scores,
    of SAMPLE of the texts; how far it is from a constant is what scores without normalisation get
    wrong. With `carry` the texts follow each other, and a recurrent model reads each with the state
    that those before left.
    """
    scorer = options.load()
    neural = scorer if isinstance(scorer, NeuralScorer) else None
    if carry:
        scores = carried_texts(texts, scorer, options.lm)
    else:
        scores = score_texts(texts, scorer, options)
    own = {}
    if neural:
        own["criterion"] = neural.lm.settings.criterion
        own["log_normaliser"] = measure_log_normaliser(texts, neural)
    by_word = scores.signature["lm"] == "ngram" or (neural is not None and neural.lm.two_way)
    rules = describe_rules("words" if by_word else "subwords", scores.kind, options.oov_penalty)
    return {
        "lm": options.lm, "kind": scores.kind,
        **summarise(texts, scorer, scores),
        "rules": rules + (f"; {CARRIED}" if carry else ""),
        "signature": scores.signature, **own,
    }  # fmt: skip


def summarise(texts: Sequence[str], scorer: Scorer, scores: TextScores) -> dict:
    """The figures of the scores of `texts`; words and characters are those that `scorer` reads."""
    normalised = [scorer.normalise(text) for text in texts]
    log_prob, words = float(scores.log_prob.sum()), sum(len(text.split()) for text in normalised)
    characters = sum(len(text) + 1 for text in normalised)  # the end of line is a character
    per_sentence = np.exp(-scores.log_prob / scores.tokens)
    return {
        "sentences": len(texts), "words": words,
        "tokens": int(scores.tokens.sum()),
        "oov": int(scores.unknown.sum()), "log_prob": log_prob,
        "subword_ppl": float(np.exp(-log_prob / scores.tokens.sum())),
        "word_ppl": float(np.exp(-log_prob / (words + len(texts)))),
        "bits_per_char": -log_prob / characters / float(np.log(2)),
        "sentence_ppl_mean": float(per_sentence.mean()),
        "sentence_ppl_median": float(np.median(per_sentence)),
    }  # fmt: skip


def describe_rules(unit: str, kind: str, oov_penalty: float) -> str:
    """RULES with what an unknown `unit` costs, and what a log-probability from both sides is."""
    both = f"; {BOTH}" if kind.startswith("two-way") else ""
    return RULES.format(unit=unit, less=f" less {oov_penalty:g} nats" if oov_penalty else "") + both


def measure_log_normaliser(texts: Sequence[str], scorer: NeuralScorer) -> dict[str, float]:
    """Mean, standard deviation, least and greatest log Z over the tokens and ends of at most SAMPLE
    texts, evenly taken from all.
    """
    sentences = scorer.prepare(texts[:: -(-len(texts) // SAMPLE)])
    parts = []
    with one_thread():
        for batch in plan_batches([scorer.cost(sentence) for sentence in sentences], scorer.rows):
            some = [sentences[i] for i in batch]
            parts += scorer.compute(some, lambda heads, _: scorer.output.log_normaliser(heads))
    values = np.concatenate(parts)
    measures = {"mean": values.mean, "sd": values.std, "min": values.min, "max": values.max}
    return {name: float(measure()) for name, measure in measures.items()}
