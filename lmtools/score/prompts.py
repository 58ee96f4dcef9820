"""Prompts: what a language model reads before each hypothesis, from a file of the user's.

A text is one prompt for all utterances, with placeholders. `{utt}` is the id, `{best}` the first
hypothesis; other names are fields that the lists have beside ids and hypotheses. A file `*.jsonl`
has a prompt for each utterance, `{"id": ..., "prompt": ...}`. Braces around anything else are text.
A prompt is read as it stands, but for blanks and one line break at its end.
"""

import copy
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.grammar import fit, parse_json
from lmtools.score.base import Scorer
from lmtools.score.trees import TreeBatch
from lmtools.types import NBest


class PromptScorer:
    """A scorer of pairs (prompt, text), and of texts behind a prompt without placeholders;
    sentences are (the prompt's tokens, both's sentence).
    """

    criterion, left_to_right = None, False  # of whole sentences alone

    def __init__(self, inner: Scorer, prompts: "Prompts"):
        if inner.pairs:
            raise UserError(
                f"{inner.spec.lm}: a translation model, which reads a source; leave prompt= out"
            )
        self.inner, self.spec, self.prompts = inner, inner.spec, prompts
        self.signature = {**inner.signature, **prompts.signature}

    def __getattr__(self, name: str):
        if name.startswith("__") or name == "inner":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def prepare(self, texts):
        alone = self.prompts.alone() if any(isinstance(text, str) for text in texts) else ""
        return self.inner.prepare_behind([(alone, t) if isinstance(t, str) else t for t in texts])

    def cost(self, sentence):
        return self.inner.cost(sentence[1])

    def unknown(self, sentence):
        return self.inner.unknown(sentence[1])[sentence[0] :]

    def token_names(self, sentence):
        return self.inner.token_names(sentence[1])[sentence[0] :]

    def plan_trees(self, sentences):
        return self.inner.plan_trees([sentence for _, sentence in sentences])

    def log_probs(self, sentences):
        joined = [sentence for _, sentence in sentences]
        together = isinstance(sentences, TreeBatch)
        values = self.inner.log_probs(TreeBatch(joined) if together else joined)
        return [row[count:] for (count, _), row in zip(sentences, values, strict=True)]

    def with_oov_penalty(self, penalty):
        scorer = copy.copy(self)
        scorer.inner = self.inner.with_oov_penalty(penalty)
        scorer.signature = {**self.signature, **scorer.inner.signature}
        return scorer


PLACE = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
ENTRY = 'write {"id": "utterance", "prompt": "text"}'


class PromptEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file of prompts."""

    id: str
    prompt: str


@dataclass(frozen=True)
class Prompts:
    """The prompts of a file: one for all, or `own` ones by utterance. Texts behind them are those
    of lists, or what the recogniser `written` has.
    """

    path: str
    text: str = ""
    own: Mapping[str, str] | None = None
    written: bool = False

    @classmethod
    def read(cls, path: str, written: bool = False) -> "Prompts":
        """Read a file of prompts; UserError with the wrong line."""
        lines = read_lines(path)
        if not path.endswith(".jsonl"):
            return cls(path, "\n".join(line for _, line in lines), written=written)
        own: dict[str, str] = {}
        for number, line in lines:
            where = f"{path}:{number}"
            if line.strip():
                entry = fit(parse_json(line, where, ENTRY), PromptEntry, where, remedy=ENTRY)
                if entry.id in own:
                    raise UserError(f"{where}: a second prompt of {entry.id!r}; leave one out")
                own[entry.id] = entry.prompt
        return cls(path, own=own, written=written)

    @property
    def signature(self) -> dict[str, str]:
        """Return the entry for signatures of scores: a hash of all prompts."""
        texts = [self.text] if self.own is None else [f"{u}\0{t}" for u, t in self.own.items()]
        return {"prompt": hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]}

    def fill(self, nbest: NBest) -> str:
        """Return the prompt of an utterance; UserError where something is missing."""
        text = self.text if self.own is None else self.own.get(nbest.utt)
        if text is None:
            raise UserError(f"{self.path}: no prompt for {nbest.utt!r}; add one, empty if need be")
        best = nbest.hyps[0].text if nbest.hyps else ""
        known = {"utt": nbest.utt, "best": best, **nbest.extra}
        return PLACE.sub(lambda match: self.value(match, known, f"utterance {nbest.utt!r}"), text)

    def alone(self) -> str:
        """Return the prompt of a text that is in no list."""
        if self.own is not None:
            raise UserError(f"{self.path}: has prompts of utterances, and this is a text alone")
        return PLACE.sub(lambda match: self.value(match, {}, "a text alone"), self.text)

    def value(self, match: re.Match, known: Mapping[str, str], what: str) -> str:
        """Return what stands for a placeholder."""
        if match[1] in known:
            return str(known[match[1]])
        line = match.string.count("\n", 0, match.start()) + 1
        raise UserError(
            f"{self.path}:{line}: {match[0]}: {what} has no such field; known:"
            f" {', '.join(known) or 'none'}"
        )

    def pair(self, nbests: Sequence[NBest], before: int, lists: str) -> list[tuple[str, str]]:
        """Return (prompt, text) of each hypothesis of some lists."""
        return list(self.pairs(nbests))

    def pairs(self, nbests: Sequence[NBest]) -> Iterator[tuple[str, str]]:
        for nbest in nbests:
            prompt = self.fill(nbest)
            yield from ((prompt, hyp.display if self.written else hyp.text) for hyp in nbest.hyps)
