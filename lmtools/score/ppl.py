"""Perplexity of texts, with the rules by which it is counted."""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.base.batching import plan_batches, prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.ngram.interpolation import complete_weights, tune_mixture
from lmtools.score.base import Scorer
from lmtools.score.load import load
from lmtools.score.mixture import MixtureScorer
from lmtools.score.texts import (
    TextScores,
    count_scored,
    one_thread,
    refuse_not_finite,
    score_all,
    score_texts,
)

RULES = (
    "natural log; the end of sentence is predicted and counted; unknown {unit} count with"
    " {probability}{less}; words are those between {spaces}"
)
OWN = "the model's unknown-token probability"
NORMALISED = "spaces after the model's normalisation of the text"
AS_KENLM = "blanks, tabs, CR and NUL alone, as KenLM has it"
TWO_WAY = "two-way"  # how kinds of scorers begin that read words from both sides
# texts whose normalisers are looked at: their scores may be known already, and log Z costs a pass
SAMPLE = 300
MIXED = "log p is that of the weighted mean of the models' probabilities, {} by {}"
BOTH = (
    "log p is the mean of that from the left, with the end of sentence, and that from the right,"
    " with its beginning"
)


def perplexity(texts: Sequence[str], spec: LMSpec, computing: Computing) -> dict:
    """Return perplexities of `texts` (one a sentence, at least one) under stated rules. What
    the normaliser empties does not count.

    subword_ppl = exp(-log p / tokens), word_ppl = exp(-log p / (words + sentences)): only the
    latter compares models of different vocabularies. Over sentences: mean and median of exp(-log
    p(s) / tokens(s)), as in Table 7 of the T-TA paper. For neural models of ours `criterion`, and
    `log_normaliser`: mean, sd, min, max over tokens of the log Z (nats) that normalised the scores,
    of a sample of the texts; how far it is from a constant is what scores without normalisation get
    wrong.
    """
    scorer = load(spec, computing)
    texts = keep_worded(texts, scorer)
    scores = score_texts(texts, scorer, computing)
    more = {}
    if scorer.criterion:
        more["criterion"] = scorer.criterion
        more["log_normaliser"] = measure_log_normaliser(texts, scorer)
    by_word = scores.signature["lm"] == "ngram" or scorer.kind.startswith(TWO_WAY)
    rules = describe_rules("words" if by_word else "subwords", scores.kind, [spec], scorer)
    return {
        "lm": spec.lm, "kind": scores.kind,
        **summarise(texts, scorer, scores),
        **leave_out_unknown(texts, scorer, scores),
        "rules": rules, "signature": scores.signature, **more,
    }  # fmt: skip


def keep_worded(texts: Sequence[str], scorer: Scorer) -> list[str]:
    """Return the texts of which the model's normaliser leaves something, as estimation reads them;
    UserError for none.
    """
    if kept := [text for text in texts if scorer.normalise(text)]:
        return kept
    raise UserError(f"{scorer.spec.lm}: its normaliser leaves no word of the text; give words")


def measure_log_normaliser(texts: Sequence[str], scorer: Scorer) -> dict[str, float]:
    """Return mean, sd, min and max of log Z over the tokens and ends of at most SAMPLE texts."""
    sentences = scorer.prepare(texts[:: -(-len(texts) // SAMPLE)])
    parts = []
    with one_thread():
        costs = [scorer.cost(sentence) for sentence in sentences]
        for batch in plan_batches(costs, scorer.rows, scorer.ragged):
            parts += scorer.compute(
                [sentences[i] for i in batch], lambda heads, _: scorer.output.log_normaliser(heads)
            )
    values = np.concatenate(parts)
    measures = {"mean": values.mean, "sd": values.std, "min": values.min, "max": values.max}
    return {name: float(measure()) for name, measure in measures.items()}


def mixture_perplexity(
    texts: Sequence[str],
    specs: Sequence[LMSpec],
    computing: Computing,
    weights: Sequence[float] | None = None,
    held_out: Sequence[str] = (),
) -> dict:
    """As `perplexity`, of the mixture of the language models of `specs`, with `mixture`: each one's
    `lm`, `weight`, `subword_ppl`, `word_ppl` and `signature`.

    `weights` as `complete_weights` takes them; None: those that make the text `held_out` most
    probable, of which `held_out` has perplexities then. Needs no cache, and computes in this
    process. UserError for models that do not predict from the left.
    """
    tune, lms = weights is None, [spec.lm for spec in specs]
    weights = np.full(len(lms), 1 / len(lms)) if weights is None else complete_weights(weights, lms)
    scorers = [load(spec, computing) for spec in specs]
    mixture = MixtureScorer(scorers, weights, lms, specs[0])
    texts, held_out = (keep_worded(side, mixture) if side else side for side in (texts, held_out))
    tuned = {}
    if tune:
        scores = MixtureScores(held_out, mixture)
        mixture = mixture.with_weights(tune_mixture(scores.joined(mixture)))
        figures = summarise(held_out, mixture, scores.mixed(mixture))
        names = ("sentences", "words", "tokens", "subword_ppl", "word_ppl")
        tuned = {"held_out": {name: figures[name] for name in names}}
    scores = MixtureScores(texts, mixture)
    mixed = scores.mixed(mixture)
    return {
        "lm": " + ".join(lms), "kind": mixture.kind,
        **summarise(texts, mixture, mixed), **leave_out_unknown(texts, mixture, mixed),
        "rules": describe_rules("tokens", mixture.kind, specs, mixture),
        "signature": mixture.signature,
        "mixture": list(describe_parts(texts, mixture, scores)),
        **tuned,
    }  # fmt: skip


def describe_parts(
    texts: Sequence[str], mixture: MixtureScorer, scores: "MixtureScores"
) -> Iterator[dict]:
    """Yield what each model of a mixture is, and its perplexities of the texts by itself."""
    for number, scorer in enumerate(mixture.scorers):
        part = summarise(texts, scorer, scores.alone(mixture, number))
        yield {
            "lm": mixture.lms[number], "weight": float(mixture.weights[number]),
            "subword_ppl": part["subword_ppl"], "word_ppl": part["word_ppl"],
            "signature": scorer.signature,
        }  # fmt: skip


class MixtureScores:
    """Scores of `texts` by each model of a mixture, for any weights: `joint_log_probs`."""

    def __init__(self, texts: Sequence[str], mixture: MixtureScorer):
        sentences, which = prepare_distinct(texts, mixture.prepare)
        logs = mixture.joint_log_probs(sentences)
        for lm, rows in zip(mixture.lms, zip(*logs, strict=True), strict=True):
            refuse_not_finite([row.sum() for row in rows], sentences, lm)
        self.logs = [logs[i] for i in which.tolist()]
        self.sentences = [sentences[i] for i in which.tolist()]

    def joined(self, mixture: MixtureScorer) -> np.ndarray:
        """Return log p (P, N) of all tokens and ends, as the mixture takes them."""
        pairs = zip(self.logs, self.sentences, strict=True)
        return np.concatenate([mixture.leave_out(*pair) for pair in pairs], axis=1)

    def mixed(self, mixture: MixtureScorer) -> TextScores:
        """Return the texts' scores under a mixture."""
        pairs = zip(self.logs, self.sentences, strict=True)
        values = np.array([mixture.mix(*pair).sum() for pair in pairs])
        return self.scores(mixture, values, mixture, self.sentences)

    def alone(self, mixture: MixtureScorer, number: int) -> TextScores:
        """Return the texts' scores under one model of a mixture."""
        values = np.array([logs[number].sum() for logs in self.logs])
        sentences = [sentence[number] for sentence in self.sentences]
        return self.scores(mixture, values, mixture.scorers[number], sentences)

    def scores(self, mixture, values: np.ndarray, scorer: Scorer, sentences) -> TextScores:
        counts = count_scored(scorer, sentences)
        return TextScores(values, *counts, kind=mixture.kind, signature=mixture.signature)


def summarise(texts: Sequence[str], scorer: Scorer, scores: TextScores) -> dict:
    """Summarise the scores of `texts` in figures; words and characters are those `scorer` reads."""
    normalised = [scorer.normalise(text) for text in texts]
    log_prob, words = (
        float(scores.log_prob.sum()),
        sum(len(scorer.split(text)) for text in normalised),
    )
    notes = list(map(str, scorer.notes)) if scores.unknown.any() else []
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
        **({"notes": notes} if notes else {}),
    }  # fmt: skip


def leave_out_unknown(texts: Sequence[str], scorer: Scorer, scores: TextScores) -> dict:
    """Return the perplexity of known tokens and ends alone, as KenLM's query prints it; nothing
    where all are known or tokens have no probabilities from the left.
    """
    places = np.flatnonzero(scores.unknown)
    if scorer.kind != "perplexity" or not getattr(scorer, "by_token", True) or not len(places):
        return {}
    chosen = [texts[place] for place in places.tolist()]
    sentences, which = prepare_distinct(chosen, scorer.prepare)
    copies, lost = np.bincount(which), 0.0
    for numbers, values in score_all(scorer, sentences):
        for number, value in zip(numbers, values, strict=True):
            lost += copies[number] * value[:-1][scorer.unknown(sentences[number])].sum()
    rest = scores.tokens.sum() - scores.unknown.sum()
    return {"known_ppl": float(np.exp((lost - scores.log_prob.sum()) / rest))}


def describe_rules(unit: str, kind: str, specs: Sequence[LMSpec], scorer: Scorer) -> str:
    """RULES, with what an unknown `unit` costs, what parts words, and what is a mean of what."""
    unseen = scorer.signature.get("unk")
    penalties = " or ".join(dict.fromkeys(f"{spec.oov_penalty:g}" for spec in specs))
    rules = RULES.format(
        unit=unit,
        probability=f"{unseen}, as the model has none" if unseen else OWN,
        less="" if penalties == "0" else f" less {penalties} nats",
        spaces=AS_KENLM if "spaces" in scorer.signature else NORMALISED,
    )
    if isinstance(scorer, MixtureScorer):
        part = "token" if scorer.by_token else "sentence"
        return f"{rules}; {MIXED.format(part, part)}"
    return f"{rules}; {BOTH}" if kind.startswith(TWO_WAY) else rules
