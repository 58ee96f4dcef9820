"""N-gram models as scorers."""

from lmtools.base.specs import LMSpec
from lmtools.ngram.model import AS_KENLM, SPACES, UNSEEN, NgramModel
from lmtools.score.base import Scorer
from lmtools.score.prefixes import NgramPrefixes
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
