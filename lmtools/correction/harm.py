"""How often a glossary or a correction changes what was right: clean text stands for recognisers'
answers without errors, so that every change is a false one.

The sound decides nothing here: whatever would take the place of a sentence has its first-pass
scores, which is harder than any real recording. A model that corrects sees each sentence first
among variants of it, in which some words are others of the text that are spelled nearly so.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from lmtools.api.weights import Phrases, add_glossary, warn
from lmtools.base.computing import USUAL, Computing
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import list_texts
from lmtools.base.options import build_keywords, describe_keywords
from lmtools.base.specs import LMSpec
from lmtools.correction.lists import SHOWN, Corrector
from lmtools.correction.share import bound_clustered, bound_share
from lmtools.formats.scores import make_table
from lmtools.rescoring.features import DERIVED, NEAR, make_columns
from lmtools.rescoring.lists import rescore_lists
from lmtools.rescoring.margins import SOURCE, Change, find_changes, join_new
from lmtools.rescoring.weights import Weights
from lmtools.score import load, score_texts
from lmtools.types import PHRASES, Hypothesis, NBest

SPELLED = "spelled"  # source of changes by forms of a glossary that stand for its phrases
SUBSTITUTES = 10  # near phrases of a glossary for a sentence, as `lmtools network substitute` has
VOCABULARY = 2000  # the most frequent words, among which near ones are looked for
VARIED = 0.15  # share of words with near ones that a variant has replaced


@dataclass(frozen=True)
class Harm:
    """What was changed of clean sentences: `changes`, and by sentence the `edits` (stretches of
    words that differ) and the `words`.
    """

    changes: tuple[Change, ...]
    edits: tuple[int, ...]
    words: tuple[int, ...]

    @property
    def sentences(self) -> int:
        return len(self.words)

    @property
    def changed(self) -> int:
        """The number of sentences that were changed."""
        return sum(count > 0 for count in self.edits)

    def bound(self, level: float = 0.95) -> float:
        """Return what the share of changed sentences is at most, exactly: Clopper and Pearson."""
        return bound_share(self.changed, self.sentences, level)

    def word_bound(self, level: float = 0.95) -> float:
        """Return what edits are at most, for a word; edits of a sentence may come together."""
        return bound_clustered(self.edits, self.words, level)


@dataclass
class HarmPlan:
    """What may change clean text: `phrases`, or a `corrector`; and what chooses: `weights`, from
    `path`, with the language models `lms` by the names of their columns.
    """

    phrases: Phrases | None = None
    corrector: Corrector | None = None
    weights: Weights | None = None
    lms: Mapping[str, LMSpec] | None = None
    computing: Computing = USUAL
    path: str = "weights"

    def measure(self, texts: Sequence[str], source: str) -> tuple[Harm, list[str]]:
        """Return what is changed of texts from `source`, and warnings."""
        self.check()
        chosen, warnings = self.make_lists(texts), []
        if self.weights:
            chosen, warnings = self.choose(chosen, source)
            changes = {change.utt: change for change in find_changes(chosen)}
        else:  # whatever is new is taken
            changes = {
                nbest.utt: unchanged(nbest)._replace(
                    chosen=nbest.hyps[-1].text, source=nbest.hyps[-1].extra[SOURCE]
                )
                for nbest in chosen
                if len(nbest.hyps) > 1
            }
        split, spelled = str.split, self.spell(chosen) if self.phrases is not None else {}
        if spelled:
            split = open_door("phrases", "matching:split_text", "--phrases")
        edits, found = [], []
        for nbest, text in zip(chosen, texts, strict=True):
            change = changes.get(nbest.utt) or unchanged(nbest)
            change = change._replace(chosen=spelled.get(nbest.utt, change.chosen))
            edits.append(count_edits(split(text), split(change.chosen)))
            found += [change] * bool(edits[-1])
        words = tuple(len(split(text)) for text in texts)
        return Harm(tuple(found), tuple(edits), words), warnings

    def check(self) -> None:
        """Raise UserError where nothing is to be measured, or what chooses does not fit."""
        if self.phrases is None and self.corrector is None:
            raise UserError("--phrases, --correct: what may change the text? give one")
        if not self.weights:
            if self.lms:
                raise UserError("--lm: chooses by --weights, which say how much it counts")
            return
        if self.weights.features.get(NEAR, 0.0) <= 0:
            raise UserError(
                f"{self.path}: no margin `near`, so nothing new is ever chosen by it; tune on lists"
                " of lmtools correct or lmtools network substitute, or leave --weights out"
            )
        columns = [name for name in self.weights.signatures if name != PHRASES]
        for name in columns:
            if name not in (self.lms or {}):
                raise UserError(
                    f"{self.path}: tuned with the column {name!r}; give its language model, --lm"
                    f" {name}=LM"
                )

    def make_lists(self, texts: Sequence[str]) -> list[NBest]:
        """Return each text as the one hypothesis of a list, and what may take its place."""
        names = self.weights.features if self.weights else {}
        given = {*DERIVED, NEAR, PHRASES, "rank", *(self.lms or {})}
        zeros = {name: 0.0 for name in names if name not in given}
        rows = enumerate(texts, 1)
        lists = [NBest(str(row), (Hypothesis(text, zeros),), text) for row, text in rows]
        if self.phrases is not None and self.weights:
            glossary = open_door("phrases", "column:find_glossary", "--phrases")(self.phrases)
            substitute = open_door("phrases", "substitute:substitute_lists", "--phrases")
            lists = list(substitute(lists, glossary, SUBSTITUTES))
        if self.corrector:
            answers = self.corrector.answer(vary_texts(texts))
            lists = [
                join_new(nbest, self.as_hypothesis(answer, nbest))
                for nbest, (*_, answer) in zip(lists, answers, strict=True)
            ]
        return lists

    def as_hypothesis(self, answer: str | None, nbest: NBest) -> list[Hypothesis]:
        text = " ".join(nbest.hyps[0].text.split())
        if answer is None or self.corrector is None or answer == text:
            return []
        if self.corrector.judge(answer, [text]) == "far":
            return []
        return [Hypothesis(answer, nbest.hyps[0].scores, {SOURCE: self.corrector.source})]

    def choose(self, lists: list[NBest], source: str) -> tuple[list[NBest], list[str]]:
        """Return the lists as the weights order them, and warnings."""
        assert self.weights is not None
        tables, texts = {}, [hyp.text for nbest in lists for hyp in nbest.hyps]
        ends = np.cumsum([len(nbest.hyps) for nbest in lists])[:-1]
        for name, spec in (self.lms or {}).items():
            scored = score_texts(texts, load(spec, self.computing), self.computing)
            parts = (np.split(column, ends) for column in (scored.log_prob, scored.tokens))
            tables[name] = make_table(lists, *parts, scored.signature)
        paths = {name: str(spec) for name, spec in (self.lms or {}).items()}
        columns = make_columns(tables, paths, lists, source)
        columns, plan, _ = add_glossary(columns, lists, self.phrases, source)
        tuned = {None: self.weights}
        told, chosen = rescore_lists(
            lists, columns, plan, tuned, source=source, place=lambda _: self.path
        )
        _, best, doubts = next(chosen)
        return best, [*told, *doubts]

    def spell(self, chosen: Sequence[NBest]) -> dict[str, str]:
        """Return by utterance what a glossary writes, if its options say so, or without weights."""
        glossary = open_door("phrases", "column:find_glossary", "--phrases")(self.phrases)
        if self.weights and not glossary.spec.spelling:
            return {}
        firsts = [replace(nbest, hyps=nbest.hyps[:1]) for nbest in chosen]
        return {nbest.utt: nbest.hyps[0].display for nbest in glossary.spell_lists(firsts)}


def unchanged(nbest: NBest) -> Change:
    """Return what nothing but the spelling of a glossary changes."""
    text = nbest.hyps[0].text
    return Change(nbest.utt, first=text, chosen=text, source=SPELLED, margin=0.0)


def count_edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of stretches of words in which two texts differ."""
    tags = [step.tag for step in Levenshtein.opcodes(first, second)]
    return sum(
        tag != "equal" and (place == 0 or tags[place - 1] == "equal")
        for place, tag in enumerate(tags)
    )


def vary_texts(texts: Sequence[str], seed: int = 1) -> list[NBest]:
    """Return a list of each text and variants of it, with other words that are spelled nearly so;
    a function of the texts and the seed.
    """
    counts = Counter(word for text in texts for word in text.split())
    words = [word for word, _ in counts.most_common(VOCABULARY)]
    apart = cdist(words, words, scorer=Levenshtein.normalized_distance, score_cutoff=0.5,
                  dtype=np.float32)  # fmt: skip
    np.fill_diagonal(apart, 1.0)
    near = {
        word: words[place]
        for word, place, row in zip(words, apart.argmin(1), apart, strict=True)
        if row[place] <= 0.5
    }
    lists, rng = [], np.random.default_rng(seed)
    for row, text in enumerate(texts, 1):
        split = text.split()
        made = [text]
        for _ in range(SHOWN - 1):
            drawn = rng.random(len(split)) < VARIED
            made.append(
                " ".join(near.get(w, w) if d else w for w, d in zip(split, drawn, strict=True))
            )
        lists.append(NBest(str(row), tuple(map(Hypothesis, dict.fromkeys(made))), text))
    return lists


@in_keywords()
def measure_harm(
    texts: Sequence[str],
    weights: Weights | None = None,
    lms: Mapping[str, str] | None = None,
    *,
    phrases: Phrases | None = None,
    correct: str | None = None,
    free: bool = False,
    **options: Any,
) -> Harm:
    """Return how often right texts would be changed, as `lmtools harm` counts it: by the glossary
    `phrases`, or by the answers of the model `correct` (as of `lmtools.correct`), chosen by
    `weights` with the language models `lms` by the names of their columns.

    The result has `changed` of `sentences`, `bound()` of their share, `word_bound()` of false edits
    for a word, and the `changes`. `options` are those of the computation. UserError for what does
    not fit together; lesser doubts are warnings.
    """
    computing = Computing(**build_keywords(Computing, options, "measure_harm"))
    corrector = correct and Corrector.open(correct, computing, free)
    specs = {name: LMSpec.parse(lm) for name, lm in (lms or {}).items()}
    given = {"weights": weights, "lms": specs, "computing": computing}
    harm, warnings = HarmPlan(phrases, corrector or None, **given).measure(
        list_texts(texts, "texts"), "texts"
    )
    warn(line for line in warnings)
    return harm


describe_keywords(measure_harm, Computing)
