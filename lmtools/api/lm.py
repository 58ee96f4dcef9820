"""Language models: loaded once, asked for the scores of texts, tokens and lists."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np

from lmtools.api.files import list_nbests
from lmtools.api.weights import rescore, warn
from lmtools.base.batching import prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import check_kind, check_path, check_text, check_whole, list_texts
from lmtools.base.options import build_keywords, describe_keywords, fill
from lmtools.base.specs import LMSpec
from lmtools.formats import scores
from lmtools.rescoring.defaults import is_default, load_weights
from lmtools.rescoring.features import LENGTHS, ScoreColumns, summed
from lmtools.rescoring.weights import Weights
from lmtools.score import Sources, score_texts
from lmtools.score import load as load_scorer
from lmtools.score.base import count_tokens
from lmtools.score.lists import WRITTEN, doubt_scored, hypothesis_texts
from lmtools.score.texts import TextScores, score_all
from lmtools.types import NBest, ScoreTable


@dataclass(frozen=True)
class TokenScores:
    """The tokens of a text, each with its log-probability in nats (tokens,), the end of sentence
    last.

    `words[i]` is the place of the word, among those between spaces in the text, that token i is of;
    -1 is of none: the end of sentence, and all tokens of a text some of which cross words.
    """

    text: str
    tokens: tuple[str, ...]
    log_probs: np.ndarray
    words: np.ndarray

    def by_word(self) -> np.ndarray:
        """Return the log-probability of each word (words,); 0 of one that has no token."""
        inside = self.words >= 0
        return np.bincount(self.words[inside], self.log_probs[inside], len(self.text.split()))


class LM:
    """A language model that scores; `load` makes it.

    `kind` says what exp(-log-probability / tokens) is: perplexity or pseudo-perplexity. `signature`
    says which model it is and how it computes; `scorer` and `computing` are what the rest of
    lmtools takes. Texts that are no lists have a scorer of their own where no engine was asked for:
    ONNX Runtime's, where it is installed and computes the model in float32, whose scores differ
    from those of lists and files in their last bits.
    """

    def __init__(self, spec: LMSpec, computing: Computing):
        check_kind(spec, LMSpec, "spec", "LMSpec", remedy="use lmtools.load")
        check_kind(computing, Computing, "computing", "Computing", remedy="use lmtools.load")
        self.given, self.computing = spec, computing
        self.scorer = load_scorer(spec, computing)
        self.kind, self.signature = self.scorer.kind, dict(self.scorer.signature)
        self.live = self.scorer.live() if computing.engine == "auto" else self.scorer

    def __reduce__(self):
        """Pickle as the model's place: another process (Pool.map) loads it again."""
        return type(self), (self.given, self.computing)

    @in_keywords()
    def score(self, texts: Sequence[str], sources: Sequence[str] | None = None) -> np.ndarray:
        """Return the log-probability of each text with the end of sentence, in nats, float64
        (texts,); of a translation model given what the text translates, one of `sources` a text.

        Equal texts get equal scores; texts are computed in batches, so give as many at once as
        there are. UserError where either a translation model or sources are without the other.
        """
        self.check_sources(sources is not None)
        texts = list_texts(texts, "texts")
        if sources is None:
            return score_texts(texts, self.live, self.computing).log_prob
        return score_texts(pair_texts(sources, texts), self.scorer, self.computing).log_prob

    def check_sources(self, given: bool) -> None:
        """Raise UserError where either a translation model or sources are without the other."""
        if given and not self.scorer.pairs:
            raise UserError(
                f"{self.scorer.spec.lm}: not loaded as a translation model, so it reads no source;"
                " leave sources out, or load such a model with pairs=True"
            )
        if self.scorer.pairs and not given:
            raise UserError(
                f"{self.scorer.spec.lm}: a translation model, which reads a source beside each"
                " sentence; give sources to score or score_lists"
            )

    @in_keywords()
    def token_scores(self, texts: Sequence[str]) -> list[TokenScores]:
        """Return the tokens of each text and their log-probabilities; UserError for a translation
        model.
        """
        self.check_sources(False)
        texts = list_texts(texts, "texts")
        sentences, which = prepare_distinct(texts, self.scorer.prepare)
        values: list = [None] * len(sentences)
        for batch, batch_values in score_all(self.live, sentences):
            for index, log_probs in zip(batch, batch_values, strict=True):
                values[index] = log_probs
        names = [(*self.scorer.token_names(sentence), "</s>") for sentence in sentences]
        counts = count_tokens(self.scorer, texts, [sentences[i] for i in which])
        return [
            TokenScores(text, names[i], values[i], number_words(numbers, len(names[i])))
            for text, i, numbers in zip(texts, which, counts, strict=True)
        ]

    @in_keywords()
    def score_lists(
        self,
        lists: Sequence[NBest],
        sources: Sequence[str] | Mapping[str, str] | None = None,
        reverse: bool = False,
        written: bool = False,
    ) -> ScoreTable:
        """Return the scores of every hypothesis: a column for `lmtools.tune` and `lmtools.rescore`,
        what a file of `lmtools score` holds.

        A translation model scores hypotheses given what they translate: `sources`, one a list in
        their order or by utterance; with `reverse` the source given the hypothesis. With `written`
        scores are of what the recogniser wrote, where the lists keep it. UserError as of `score`.
        """
        self.check_sources(sources is not None)
        lists = list_nbests(lists, "lists")
        if sources is None:
            texts, more = hypothesis_texts(lists, written), WRITTEN if written else {}
        else:
            given = Sources("sources", check_sources(sources), reverse)
            texts, more = given.pair(lists, 0, "the lists"), given.signature
            given.check_number(len(lists), "the lists")
        flat = score_texts(texts, self.scorer, self.computing)
        if sources is None:
            counts = int(flat.unknown.sum()), int(flat.tokens.sum()) - len(texts)
            warn(doubt_scored("lists", texts, counts, self.scorer, lists=True))
        return divide_scores(lists, replace(flat, signature={**flat.signature, **more}))

    @overload
    def rescore(self, nbest: NBest, weights: Weights | str) -> NBest: ...

    @overload
    def rescore(self, nbest: Sequence[NBest], weights: Weights | str) -> list[NBest]: ...

    @in_keywords()
    def rescore(self, nbest, weights):
        """Return a list, or several, with the best hypothesis first, by weights that were tuned
        with this model as their one column, or "default:whisper" for lists of Whisper. Lists
        without hypotheses stay as they are.

        UserError where the weights are of no or several columns, or of another model's.
        """
        lists = list_nbests([nbest] if isinstance(nbest, NBest) else nbest, "nbest")
        if is_default(weights):
            weights = load_weights(weights, lists, ScoreColumns({}, {}, {}), "lm")
        remedy = "read a file with lmtools.Weights.load(path)"
        check_kind(weights, Weights, "weights", "Weights", remedy=remedy)
        if not any(each.hyps for each in lists):
            return nbest if isinstance(nbest, NBest) else lists
        known = {name for each in lists for hyp in each.hyps for name in hyp.scores}
        missing = [name for name in weights.features if name not in {*known, *LENGTHS, "rank"}]
        if len({summed(name) for name in missing}) != 1:
            raise UserError(
                f"nbest: lacks {', '.join(missing) or 'none'} of {', '.join(weights.features)},"
                " which the weights are of: not one column; use lmtools.rescore"
            )
        table = self.score_lists(lists)
        best = rescore(lists, weights, dict.fromkeys(missing, table))
        return best[0] if isinstance(nbest, NBest) else best


def divide_scores(lists: Sequence[NBest], flat: TextScores) -> ScoreTable:
    """Return the scores of all hypotheses in a row as a table of the lists."""
    bounds = np.cumsum([0, *(len(nbest.hyps) for nbest in lists)])
    values, counts = (
        [column[begin:end] for begin, end in pairwise(bounds)]
        for column in (flat.log_prob, flat.tokens)
    )
    return scores.make_table(lists, values, counts, dict(flat.signature))


@in_keywords()
def load(
    lm: str | os.PathLike, *, threads: int | None = None, cache: str = "none", **options: Any
) -> LM:
    """Return the language model `lm`: a directory of `lmtools train` or `lmtools ngram`, an
    installed model by its name (`en-books-4gram`, docs/models.md), a KenLM or ARPA file, `hf:DIR`,
    a Hugging Face model on this disk, or a mixture of such, `mix:LM=0.6,LM=0.4`.

    `options` are those of the specification, which `lm` may have too (`DIR,intact=true`), and of
    the computation: `intact`, `normalise`, `oov_penalty`, `noise`, `pairs` for a
    translation model; `device` (cpu, cuda, cuda:1, auto), `precision` of matrix products (float32,
    bfloat16, int8, auto), `engine` (torch, prepared, onnx, auto), `rows`, `nj` (lmtools.base.specs,
    lmtools.base.computing). `cache` keeps scores between runs: a directory or `default`, that of
    the command line. `threads` sets torch's in this whole process. UserError where there is no such
    model, or it cannot do what is asked.
    """
    check_path(lm, "lm")
    if threads is not None:
        set_threads(check_whole(threads, "threads", 1))
    computing = fill(Computing, options, cache=cache)
    rest = {name: value for name, value in options.items() if name not in vars(computing)}
    given = build_keywords(LMSpec, rest, "load", "pairs")
    return LM(LMSpec.parse(str(lm), **given), computing)


describe_keywords(load, LMSpec, Computing)


def listen(asr: str, *, device: str = "cpu"):
    """Return a recogniser that scores texts by sound, loaded: `whisper:DIR`, a Whisper model of
    CTranslate2. Its `score(texts, samples)` gives the `log_prob` and `tokens` of each text, of
    `samples` (N,) at its `rate` a second. UserError where there is no such model.
    """
    return open_door("ears", "listening:listen", "listen")(check_text(asr, "asr"), device)


def set_threads(threads: int) -> None:
    """Set torch's threads, where it is installed: n-grams do without."""
    with contextlib.suppress(ModuleNotFoundError):
        import torch

        torch.set_num_threads(threads)


def pair_texts(sources: Sequence[str], texts: list[str]) -> list[tuple[str, str]]:
    """Return texts, each behind its source; UserError where there are more or fewer."""
    sources = list_texts(sources, "sources")
    if len(texts) != len(sources):
        raise UserError(f"{len(sources)} sources of {len(texts)} texts; give each its own")
    return list(zip(sources, texts, strict=True))


def check_sources(sources) -> Mapping[str, str] | list[str]:
    """Return sources by utterance or in the lists' order; UserError for what is no text."""
    if not isinstance(sources, Mapping):
        return list_texts(sources, "sources")
    return {utt: check_text(text, f"sources[{utt!r}]") for utt, text in sources.items()}


def number_words(counts: Sequence[int] | None, tokens: int) -> np.ndarray:
    """Return the word of each token (tokens,), the end last, from the tokens of each word."""
    words = np.full(tokens, -1, dtype=np.int64)
    if counts is not None:
        words[: tokens - 1] = np.repeat(np.arange(len(counts)), counts)
    return words
