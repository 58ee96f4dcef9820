"""Lists with what a language model answered to them, as further hypotheses.

First-pass scores of an answer are estimated as `lmtools network recombine` does, and its score
`near` is -1: `lmtools tune` finds the margin by which it has to win, and where answers do not save
errors beyond doubt none ever wins.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rapidfuzz.distance import Levenshtein

from lmtools.api.files import list_nbests
from lmtools.api.weights import warn
from lmtools.base.computing import Computing
from lmtools.base.doors import find_doors, open_door
from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import check_path, check_whole
from lmtools.base.log import track
from lmtools.base.options import build_keywords, describe_keywords
from lmtools.base.specs import LMSpec
from lmtools.correction.allowed import Allowed
from lmtools.correction.answers import (
    BUILT_IN,
    CachedAnswers,
    Generate,
    ServerWriter,
    read_prompts,
    show_list,
)
from lmtools.rescoring.margins import SOURCE, join_new
from lmtools.score import load
from lmtools.score.prompts import Prompts
from lmtools.text.normaliser import parse_normaliser
from lmtools.types import Hypothesis, NBest

HELD, FREE = "corrected", "corrected freely"  # sources of new hypotheses
SHOWN = 5  # hypotheses of a list in a prompt, and whose words are allowed
TOKENS = 128  # of an answer, at most
FARTHEST = 0.5  # share of an answer's words, at most, that differ from its nearest hypothesis
LIBRISPEECH = parse_normaliser("librispeech")


def open_generate(spec: LMSpec, computing: Computing) -> Generate:
    """Return what writes answers by the model of a specification; UserError for one that cannot."""
    if spec.lm.startswith(("http://", "https://")) and "llms" in find_doors():
        return ServerWriter(spec)
    scorer: Any = load(spec, computing)
    if hasattr(scorer, "context") and hasattr(scorer, "vocab"):
        from lmtools.correction.gguf import GgufWriter  # llama_cpp is an optional dependency

        return GgufWriter(scorer)
    if hasattr(scorer, "tokenizer") and hasattr(scorer, "begin") and not scorer.pairs:
        from lmtools.correction.writers import HuggingFaceWriter  # torch takes seconds

        return HuggingFaceWriter(scorer)
    raise UserError(
        f"{scorer.source}: writes no text; give a left-to-right model of Hugging Face, hf:DIR, a"
        " GGUF file, gguf:FILE, or a server, http://HOST:PORT/v1"
    )


@dataclass
class Corrector:
    """What a model makes of lists: held to the words of their first `shown` hypotheses, or `free`.
    `counts` are of the answers so far.
    """

    generate: Generate
    free: bool = False
    shown: int = SHOWN
    prompts: Prompts = BUILT_IN
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.networks = open_door("networks", "lists", "correct")
        self.source = FREE if self.free else HELD

    @classmethod
    def open(
        cls, lm: str, computing: Computing, free: bool = False, shown: int = SHOWN
    ) -> "Corrector":
        """Open the model of a specification, whose `prompt=` takes the place of the built-in one;
        answers are in the cache.
        """
        spec = LMSpec.parse(lm)
        prompts = read_prompts(spec.prompt) if spec.prompt else BUILT_IN
        generate = open_generate(replace(spec, prompt=None), computing)
        return cls(CachedAnswers(generate, computing), free, shown, prompts)

    def correct(self, nbests: Sequence[NBest]) -> Iterator[NBest]:
        """Yield each list with its answer behind its own hypotheses, if that is a new one."""
        return (self.join(*found) for found in self.answer(nbests))

    def join(self, nbest: NBest, built: Any, text: str | None) -> NBest:
        """Return a list with what `answer` found for it, if that is new."""
        texts = [" ".join(hyp.text.split()) for hyp in nbest.hyps]
        new = []
        if text is not None and self.judge(text, texts) == "new":
            (scores,) = self.networks.estimate_scores(nbest, built, [text])
            new = [Hypothesis(text, scores, {SOURCE: self.source})]
        return join_new(nbest, new)

    def answer(self, nbests: Sequence[NBest]) -> Iterator[tuple[NBest, Any, str | None]]:
        """Yield each list, its network as it grew, and the answer in the list's writing; None where
        its words can build nothing else. UserError for an answer that was not allowed.
        """
        builds = [self.networks.grow_network(nbest, self.shown) for nbest in nbests]
        pairs = zip(nbests, builds, strict=True)
        allowed = [Allowed.of(builder.finish(nbest.utt)) for nbest, (builder, _) in pairs]
        texts = [[hyp.text for hyp in nbest.hyps[: self.shown]] for nbest in nbests]
        rows = [
            row
            for row, one in enumerate(allowed)
            if texts[row] and (self.free or one.most > len(set(texts[row])))
        ]
        held = [None if self.free else allowed[row] for row in rows]
        prompts = [show_list(texts[row], self.prompts, nbests[row]) for row in rows]
        answers = self.generate(prompts, held, TOKENS)
        found = zip(rows, track(answers, "correct", len(rows), "list"), strict=True)
        due, answered = next(found, (None, ""))
        for row, (nbest, built) in enumerate(zip(nbests, builds, strict=True)):
            if row != due:
                yield nbest, built, None
                continue
            if not self.free and not allowed[row].holds(answered):
                raise UserError(
                    f"utterance {nbest.utt!r}: the answer {answered!r:.80} is not of the words that"
                    " were allowed: the server takes no grammar; give another, or --free"
                )
            yield nbest, built, self.write_as(texts[row], answered)
            due, answered = next(found, (None, ""))

    def write_as(self, texts: Sequence[str], answer: str) -> str:
        """Return a free answer without case and marks, where the texts have none."""
        plain = self.free and all(LIBRISPEECH(text).split() == text.split() for text in texts)
        return " ".join((LIBRISPEECH(answer) if plain else answer).split())

    def judge(self, text: str, texts: Sequence[str]) -> str:
        """Return what an answer is to the texts of its list, and count it: `known`, `new`, or
        `far` from all of them, as answers to what was said are.
        """
        words = text.split()
        apart = min(Levenshtein.normalized_distance(words, one.split()) for one in texts)
        kind = "known" if text in texts else "far" if apart > FARTHEST else "new"
        self.counts[kind] += 1
        return kind

    def describe(self) -> Iterator[str]:
        """Yield what the answers were."""
        how = "free" if self.free else "held to the words of the lists"
        total, counts = sum(self.counts.values()), self.counts
        yield f"{total} answers, {how}: {counts['new']} are new, {counts['known']} in their lists"
        if counts["far"]:
            yield (
                f"{counts['far']} answers differ from every hypothesis of their list in more than"
                f" {FARTHEST:.0%} of the words and are left out"
            )


@in_keywords()
def correct(
    lists: Sequence[NBest], lm: str | os.PathLike, *, free: bool = False, depth: int = SHOWN,
    **options: Any,
) -> list[NBest]:  # fmt: skip
    """Return the lists with what a language model that writes (`hf:DIR`) makes of each behind its
    own hypotheses, marked by the extra `source`, with the score `near`: what `lmtools correct`
    writes, for `tune` and `rescore`.

    Answers are of the words of the first `depth` hypotheses of a list, or `free`. `options` are
    those of the computation: `device`, `precision`, `cache`. UserError for a model that does not
    write.
    """
    check_path(lm, "lm")
    computing = build_keywords(Computing, options, "correct")
    shown = check_whole(depth, "depth", 1)
    corrector = Corrector.open(str(lm), Computing(**computing), free, shown)
    result = list(corrector.correct(list_nbests(lists, "lists")))
    warn(line for line in corrector.describe() if "left out" in line)
    return result


describe_keywords(correct, Computing)
