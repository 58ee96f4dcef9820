"""A language model for flashlight-text's lexicon decoder, which torchaudio's `ctc_decoder` is (the
package flashlight-text is needed; torchaudio's CTCDecoderLM is a subclass of its LM).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from flashlight.lib.text.decoder import LM as FlashlightBase
from flashlight.lib.text.decoder import LMState

from lmtools.api.lm import LM


class FlashlightLM(FlashlightBase):
    """log p(word | words before) in nats of the words of a decoder's word dictionary, which
    `lm_weight` scales.

        words = [line.split()[0] for line in open("words.txt")]
        decoder = ctc_decoder(lexicon, tokens, lm=FlashlightLM(lmtools.load("lm"), words),
                              lm_dict="words.txt", nbest=20, lm_weight=0.5, word_score=1.5)

    `words` are all words in the order of their indices: the lines of `lm_dict`. The first words of
    a sentence are scored together, since the decoder's trie asks for all of them; later ones one at
    a time, as the decoder asks, each once a search. UserError for a model that reads both sides of
    a word.
    """

    def __init__(self, lm: LM, words: Sequence[str]):
        super().__init__()
        self.lm, self.words = lm.scorer, list(words)
        self.start(True)  # refuses a model without prefixes

    @cached_property
    def first(self) -> np.ndarray:
        """The log p of each word as the first of a sentence (words,)."""
        prefixes = self.lm.prefixes()
        return prefixes.words(np.full(len(self.words), prefixes.start), self.words)[0]

    def start(self, start_with_nothing: bool) -> LMState:
        """Return the beginning of a new search; what the last one remembered is freed."""
        self.prefixes = self.lm.prefixes()
        root = LMState()
        # flashlight compares states by identity: one that is a key here stays the object it is
        self.nodes: dict[LMState, int] = {root: self.prefixes.start}
        self.scores: dict[LMState, float] = {}
        self.indices: dict[LMState, int] = {}  # of first words that nothing follows yet
        return root

    def score(self, state: LMState, usr_token_idx: int) -> tuple[LMState, float]:
        """Return the state after a word, and the word's log-probability."""
        child = state.child(usr_token_idx)
        if child not in self.scores:
            node = self.find_node(state)
            if node == self.prefixes.start:
                self.indices[child] = usr_token_idx
                self.scores[child] = float(self.first[usr_token_idx])
            else:
                self.scores[child], self.nodes[child] = self.grow(node, usr_token_idx)
        return child, self.scores[child]

    def finish(self, state: LMState) -> tuple[LMState, float]:
        """Return the state after the end of sentence, and its log-probability."""
        child = state.child(-1)
        if child not in self.scores:
            self.scores[child] = float(self.prefixes.end(np.array([self.find_node(state)]))[0])
        return child, self.scores[child]

    def find_node(self, state: LMState) -> int:
        if state not in self.nodes:
            _, self.nodes[state] = self.grow(self.prefixes.start, self.indices[state])
        return self.nodes[state]

    def grow(self, node: int, index: int) -> tuple[float, int]:
        """Return log p of a word after a prefix, and the longer prefix."""
        log_p, longer = self.prefixes.words(np.array([node]), [self.words[index]])
        return float(log_p[0]), int(longer[0])
