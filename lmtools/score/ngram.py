"""N-gram models as scorers of texts and of word prefixes."""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.base.specs import LMSpec
from lmtools.ngram.kenlm_files import kenlm
from lmtools.ngram.model import AS_KENLM, LN10, SPACES, UNSEEN, NgramModel
from lmtools.score.base import Scorer, WordPrefixes
from lmtools.text.subword.lists import Word
from lmtools.version import __version__


class NgramScorer(Scorer):
    """A KenLM or ARPA model, queried through kenlm."""

    kind = "perplexity"
    left_to_right = True

    def __init__(self, model: NgramModel, spec: LMSpec):
        self.spec, self.model, self.subword = spec, model, model.subword
        words = model.subword is None or model.subword.scheme == Word.scheme
        self.open_words = words and model.unknown is None
        self.notes = model.notes
        self.signature = {
            "lm": "ngram", "model": model.hash[:16],
            "precision": "float32", "version": __version__,
            **({SPACES: AS_KENLM} if model.foreign else {}),
            **({"unk": f"{10**UNSEEN:g}"} if model.lacks_unknown else {}),
        }  # fmt: skip

    def normalise(self, text):
        return self.model.normalise(text)

    def split(self, text):
        return self.model.split(text)

    def prepare(self, texts):
        return [tuple(self.model.tokens(text)) for text in texts]

    def cost(self, sentence):
        return 1

    def unknown(self, sentence):
        return self.model.find_unknown(sentence)

    def token_names(self, sentence):
        return list(sentence)

    def log_probs(self, sentences):
        scores = []
        for sentence in sentences:
            scores.append(self.model.query(sentence)[0])
        return self.penalise(sentences, scores)

    def grow_prefixes(self):
        return NgramPrefixes(self)


class NgramPrefixes(WordPrefixes):
    """The prefixes of one utterance under an n-gram model: a node is a KenLM state. Scores equal
    `NgramModel.query`'s; a word that normalises to nothing scores 0 and keeps its node.
    """

    def __init__(self, scorer):
        super().__init__(scorer)
        self.score = scorer.model.step
        begin = kenlm.State()
        scorer.model.kenlm.BeginSentenceWrite(begin)
        # no other prefix has this state: <s> in a text is an unknown word
        self.states = Numbering(begin)

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = [self.grow_word(node, word) for node, word in zip(nodes, words, strict=True)]
        scores, longer = zip(*rows, strict=True) if rows else ((), ())
        return np.array(scores, dtype=np.float64) * LN10, np.array(longer, dtype=np.int64)

    def grow_word(self, node: int, word: str) -> tuple[float, int]:
        """Return log10 p(word | prefix) and the longer prefix."""
        total, state = 0.0, self.states.things[node]
        tokens = self.known.tokens(word, node == self.start)
        for token in tokens:
            before, state = state, kenlm.State()
            total += self.score(before, token, state)
        return total, self.states(state) if tokens else node

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """See lmtools.lattice.expand.Prefixes."""
        after, states = kenlm.State(), [self.states.things[node] for node in nodes.tolist()]
        scores = [self.score(state, "</s>", after) for state in states]
        return np.array(scores, dtype=np.float64) * LN10
