"""Shallow fusion in the `generate` of Hugging Face's encoder-decoder models: Whisper, Marian, BART,
T5 (transformers is needed).
"""

import re
from collections.abc import Sequence

import numpy as np
import torch
from transformers import LogitsProcessor

from lmtools.api.lm import LM
from lmtools.score.base import WordPrefixes

# what begins a token that begins a word: byte-level BPE, SentencePiece
MARKS = ("Ġ", "▁")
CONTROL = re.compile(r"<\|.*\|>")  # Whisper's languages, tasks and times

Pending = tuple[int, tuple[int, ...]]  # the prefix of complete words, and tokens of the next one


class ShallowFusion(LogitsProcessor):
    """Adds weight x log p(word | words before) + bonus, in nats, where a word ends.

        fusion = ShallowFusion(lmtools.load("lm"), tokenizer, weight=0.2)
        model.generate(**inputs, num_beams=10, logits_processor=[fusion])

    A word is complete when a token follows that begins another (a mark of a space), a control token
    or the end; all of these tokens get its score, tokens that go on with the word get none. So in a
    beam search a hypothesis inside a word is ahead by that word's score, which `num_beams` has to
    bear; a finished hypothesis gets weight x `LM.score` of its text, with the end of sentence, and
    bonus x its words. Texts go through the model's own normaliser, so case and punctuation may
    differ; a language written without spaces is one long word, and no use here. One object serves
    one `generate` at a time. UserError for a model that reads both sides of a word.
    """

    def __init__(self, lm: LM, tokenizer, weight: float, bonus: float = 0.0):
        self.lm, self.tokenizer = lm.scorer, tokenizer
        self.weight, self.bonus = weight, bonus
        names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        plain = {i for i, name in enumerate(names) if name and not CONTROL.fullmatch(name)}
        plain -= {*tokenizer.all_special_ids}
        self.begins = {i for i in plain if names[i].startswith(MARKS)}
        # what goes on with a word; ids that the tokenizer does not know are controls as others
        self.inside, self.end = plain - self.begins, tokenizer.eos_token_id
        self.texts: dict[tuple[int, ...], list[str]] = {}
        self.restart()

    def restart(self) -> None:
        self.prefixes: WordPrefixes = self.lm.prefixes()
        self.known: dict[tuple[int, ...], Pending] = {(): (self.prefixes.start, ())}
        self.read = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores (rows, tokens) of what may follow the rows of tokens (rows, read)."""
        if input_ids.shape[1] <= self.read:
            self.restart()
        self.read = input_ids.shape[1]
        states = [self.follow(tuple(row)) for row in input_ids.tolist()]
        gains, nodes = self.complete(states)
        ends = self.prefixes.end(nodes)
        ending = torch.ones(scores.shape[1], dtype=torch.bool)
        ending[sorted(i for i in self.inside if i < len(ending))] = False
        gain, last = (
            torch.tensor(values, dtype=scores.dtype, device=scores.device)
            for values in (gains, self.weight * ends)
        )
        fused = scores + gain[:, None] * ending.to(scores)
        fused[:, self.end] += last
        return fused

    def follow(self, row: tuple[int, ...]) -> Pending:
        begin = len(row)
        while row[:begin] not in self.known:
            begin -= 1
        for stop in range(begin, len(row)):
            node, tokens = self.known[row[:stop]]
            token = row[stop]
            if token in self.inside:
                tokens += (token,)
            else:
                node = int(self.complete([(node, tokens)])[1][0])
                tokens = (token,) * (token in self.begins)
            self.known[row[: stop + 1]] = (node, tokens)
        return self.known[row]

    def complete(self, states: Sequence[Pending]) -> tuple[np.ndarray, np.ndarray]:
        """Return gains (states,) of pending words where they end, and the prefixes after them."""
        nodes = np.array([node for node, _ in states], dtype=np.int64)
        words = [self.words(tokens) for _, tokens in states]
        gains = np.zeros(len(states))
        for place in range(max(map(len, words), default=0)):
            rows = np.array([i for i, spelled in enumerate(words) if len(spelled) > place])
            log_p, longer = self.prefixes.words(nodes[rows], [words[i][place] for i in rows])
            gains[rows] += self.weight * log_p + self.bonus
            nodes[rows] = longer
        return gains, nodes

    def words(self, tokens: tuple[int, ...]) -> list[str]:
        """Return the words that tokens spell: one, as a rule."""
        if tokens not in self.texts:
            names = self.tokenizer.convert_ids_to_tokens(list(tokens))
            self.texts[tokens] = self.tokenizer.convert_tokens_to_string(names).split()
        return self.texts[tokens]
