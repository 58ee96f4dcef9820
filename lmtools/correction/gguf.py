"""GGUF files that write, in this process by llama.cpp."""

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp

from lmtools.correction.answers import TokenWriter

ROWS = 128  # tokens that are read at a time
PIECE = 256  # bytes of a token, at most


class GgufWriter(TokenWriter):
    """Answers of a model of `gguf:FILE`; a state is the number of tokens that its one sequence has,
    of which whatever comes later is forgotten.
    """

    def __init__(self, scorer: Any):
        self.memory = llama_cpp.llama_get_memory(scorer.context)
        super().__init__(scorer)
        vocab = scorer.vocab
        ends = (llama_cpp.llama_vocab_eos(vocab), llama_cpp.llama_vocab_eot(vocab))
        self.stops = frozenset([*ends, scorer.begin])

    def encode(self, text):
        return list(self.scorer.tokenize(text))

    def decode(self, tokens: Sequence[int]) -> str:
        room = ctypes.create_string_buffer(PIECE)
        pieces = []
        for token in tokens:
            place = self.scorer.vocab, token, room, PIECE
            size = llama_cpp.llama_token_to_piece(*place, 0, False)  # special tokens have none
            pieces.append(room.raw[: max(size, 0)])
        return b"".join(pieces).decode(errors="replace")

    def read(self, tokens, state):
        begin = state or 0
        llama_cpp.llama_memory_seq_rm(self.memory, -1, begin, -1)
        for first in range(0, len(tokens), ROWS):
            part = tokens[first : first + ROWS]
            depths = range(begin + first, begin + first + len(part))
            logits = self.scorer.decode(part, depths, [[0]] * len(part))
        return logits[-1], begin + len(tokens)
