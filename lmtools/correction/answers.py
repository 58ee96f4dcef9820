"""Prompts that show a list, and models of Hugging Face that answer them.

Words of a list are text: they are put into the prompt once, never as special tokens, and an answer
ends with its line. Where answers are held to what a list's words can build, the model is asked only
where there is a choice.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import torch

from lmtools.base.computing import Computing
from lmtools.base.doors import find_doors, open_door
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.correction.allowed import Allowed, TokenPaths
from lmtools.models.device import autocast
from lmtools.score import load

LIST = "{list}"  # in a prompt, the place of the hypotheses
PROMPT = """\
A speech recogniser gives several guesses of each sentence. The line "Said:" has what was said.

- he went to the see with his brother
- he when to the sea with his brother
- he went to the sea with his brothers
Said: he went to the sea with his brother

- I no that the whether is find today
- I know that the whether is fine to day
- I know that weather is fine today
Said: I know that the weather is fine today

{list}
Said:"""


class Generate(Protocol):
    """What writes answers: one for each prompt, of what is `allowed` (None: any), of at most
    `tokens` tokens, up to the end of the line.
    """

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]: ...


def show_list(texts: Sequence[str], prompt: str = PROMPT) -> str:
    """Return the prompt with the texts in the place of LIST, a line each."""
    before, _, after = prompt.partition(LIST)
    return before + "\n".join(f"- {' '.join(text.split())}" for text in texts) + after


def open_generate(spec: LMSpec, computing: Computing) -> Generate:
    """Return what writes answers by the model of a specification; UserError for one that cannot."""
    if "llms" in find_doors():
        with suppress(AttributeError):  # of a door that scores and does not write
            if found := open_door("llms", "writing:open_generate", spec.lm)(spec, computing):
                return found
    return HuggingFaceWriter(load(spec, computing))


class HuggingFaceWriter:
    """Greedy answers of a left-to-right model of Hugging Face; beginnings that all prompts have are
    read once.
    """

    def __init__(self, scorer: Any):
        if not (hasattr(scorer, "tokenizer") and hasattr(scorer, "begin")) or scorer.pairs:
            raise UserError(
                f"{scorer.source}: writes no text; give a left-to-right model of Hugging Face,"
                " hf:DIR"
            )
        self.scorer, self.tokenizer, self.model = scorer, scorer.tokenizer, scorer.model
        line, word = (self.encode(text) for text in ("a\n", "a"))
        same = share_beginning([line, word])
        self.end = (line[len(same) :] or [scorer.end])[0]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text in which nothing is a special token."""
        given = {"add_special_tokens": False, "split_special_tokens": True}
        return self.tokenizer(text, **given)["input_ids"]

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]:
        """Yield an answer a prompt, in order; UserError for a prompt that is too long."""
        rows = [[self.scorer.begin, *self.encode(prompt)] for prompt in prompts]
        for prompt, row in zip(prompts, rows, strict=True):
            self.scorer.check_length(prompt, row, tokens)
        shared = share_beginning(rows)[:-1]
        cache = self.read(shared, None).past_key_values if len(rows) > 1 and shared else None
        begin = len(shared) if cache is not None else 0
        for row, held in zip(rows, allowed, strict=True):
            follow = self.write_free if held is None else self.write_held
            with torch.inference_mode():
                written = follow(row[begin:], copy.deepcopy(cache), held or tokens)
            yield self.decode(written)

    def decode(self, tokens: Sequence[int]) -> str:
        text = self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        return " ".join(text.split())

    @torch.inference_mode()
    def read(self, tokens: Sequence[int], cache):
        """Return the model's output for tokens behind a cache: logits of the last one."""
        ids = torch.tensor([list(tokens)], device=self.scorer.device)
        with autocast(self.scorer.device, self.scorer.precision):
            return self.model(
                input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1
            )

    def write_held(self, prompt: list[int], cache, allowed: Allowed) -> list[int]:
        """Return the tokens of an answer among those allowed."""
        known = self.scorer.words
        known.learn(allowed.words)
        paths = TokenPaths(allowed, lambda word: known.tokens(word, first=False), self.end)
        written: list[int] = []
        pending, here = prompt, paths.start
        while options := paths.options(here):
            token = next(iter(options))
            if len(options) > 1:
                output = self.read(pending, cache)
                pending, cache = [], output.past_key_values
                logits = output.logits[0, -1]
                token = max(options, key=lambda one: (float(logits[one]), -one))
            here = options[token]
            pending.append(token)
            written.append(token)
        return written[:-1]

    def write_free(self, prompt: list[int], cache, tokens: int) -> list[int]:
        """Return the tokens of any answer up to the end of the line."""
        special = {self.end, self.scorer.end, *self.tokenizer.all_special_ids}
        written: list[int] = []
        pending = prompt
        while len(written) < tokens:
            output = self.read(pending, cache)
            token = int(output.logits[0, -1].argmax())
            if token in special or "\n" in self.tokenizer.decode([token]):
                break
            pending, cache = [token], output.past_key_values
            written.append(token)
        return written


def share_beginning(rows: Sequence[list[int]]) -> list[int]:
    """Return the tokens that all rows begin with."""
    first, last = min(rows, default=[]), max(rows, default=[])
    differ = (place for place, pair in enumerate(zip(first, last, strict=False))
              if pair[0] != pair[1])  # fmt: skip
    return first[: next(differ, len(first))]
