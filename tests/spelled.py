"""Models with random weights, for tests of what they are used for: a two-way one over spelled
words, a causal one over words.
"""

import torch
from toys import sentences

from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.text import Normaliser
from lmtools.text.subword import train

ARCH = {
    "piece_dim": 4,
    "filters": [[1, 4], [2, 6]],
    "highway": 1,
    "dim": 8,
    "units": 12,
    "layers": 2,
    "dropout": 0.0,
}


def random_elmo(home, pieces="char", size=None):
    """The directory `home`/lm of such a model: lower-cased words spelled by `pieces`."""
    lines, lower = sentences(60, 3), Normaliser(case="lower")
    train("word", lines, None, lower, home / "words")
    vocabulary = train(pieces, lines, size, lower, home / "pieces", words=home / "words")
    torch.manual_seed(4)
    lm = LanguageModel(
        Settings("elmo", "two-way", arch=ARCH),
        vocabulary.size,
        vocabulary.words.counts,
        words=vocabulary.words,
    )
    # far from linear, so that a word's neighbours show
    for parameter in lm.trunk.lstms.parameters():
        torch.nn.init.normal_(parameter, 0, 0.7)
    return saved(lm, vocabulary, home / "lm")


def saved(lm, vocabulary, directory):
    prepare_directory(directory, lm.settings, vocabulary)
    save_weights(directory, lm)
    return directory
