"""One language model of a language-modelling experiment: what was trained, on what, how long, and
how well it predicts each text.
"""

import json
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.errors import UserError
from lmtools.files import read_bytes
from lmtools.report.artifacts import read_yaml
from lmtools.report.names import LOOKS, SPARE, Look
from lmtools.report.shapes import TEXT, WHOLE
from lmtools.subword import SPECIALS
from lmtools.subword.base import DESCRIPTION
from lmtools.subword.spelled import Spelled

NGRAM, LSTM, GCNN, ELMO, ESULMO, OTHER = "n-gram", "LSTM", "GCNN", "ELMo", "ESuLMo", "other"
FAMILIES = {  # by what config.yaml calls a model; in printing order
    "ngram": NGRAM, "lstm": LSTM, "gcnn": GCNN, "causal": "Transformer", "masked": "biLM (masked)",
    "tta": "T-TA", "elmo": ELMO,
}  # fmt: skip
PIECES = {"bpe": "BPE pieces", "unigram": "unigram pieces", "char": "characters", "word": "words"}
FAMILY_LOOKS = {
    NGRAM: LOOKS["ngram"], LSTM: LOOKS["lstm"], GCNN: LOOKS["causal"], "Transformer": LOOKS["all"],
    "biLM (masked)": LOOKS["masked"],
    "T-TA": LOOKS["tta"], ELMO: LOOKS["masked"], ESULMO: LOOKS["tta"], OTHER: LOOKS["@first"],
}  # fmt: skip
# as they begin names of models
NAMES = {"lstm": LSTM, "gcnn": GCNN, "elmo": ELMO, "esulmo": ESULMO}
# of output layers: saved with the weights, but not learnt
BUFFERS = ("rank", "noise", "tries", "inflation")
VALID, TEST = "valid", "test"
# looks of a grid's runs
RUNS = (
    tuple(LOOKS[name] for name in ("causal", "masked", "tta", "tta+ngram", "ngram", "all", "lstm"))
    + SPARE
)


@dataclass(frozen=True)
class Vocabulary:
    """What a model reads (`scheme` and how many of it) and, where that spells words, how many words
    it predicts; specials counted.
    """

    scheme: str
    size: int
    words: int | None = None

    def __str__(self) -> str:
        read = f"{self.size:,} {PIECES.get(self.scheme, self.scheme)}"
        return f"{read}, {self.words:,} words" if self.words else read


@dataclass(frozen=True, eq=False)
class Model:
    """A language model by the directory lm/NAME and what was measured of it; a part that is absent
    is empty or None.

    `figures`: what `lmtools ppl` wrote, by set; `lines`: metrics.jsonl; `parameters`: numbers that
    were learnt, of n-grams the n-grams.
    """

    name: str
    config: Mapping
    lines: Sequence[Mapping]
    figures: Mapping[str, Mapping]
    vocabulary: Vocabulary | None
    parameters: int | None

    @property
    def family(self) -> str:
        """The family's printed name; words spelled by anything but characters make an ELMo a
        subword ELMo.
        """
        family = FAMILIES.get(self.config.get("kind") or self.config.get("model"), OTHER)
        return (
            ESULMO
            if family == ELMO and self.vocabulary and self.vocabulary.scheme != "char"
            else family
        )

    @property
    def look(self) -> Look:
        """The look of its family."""
        return FAMILY_LOOKS[self.family]

    @property
    def kind(self) -> str:
        """What its perplexities are: `perplexity`, `two-way perplexity` or `pseudo-perplexity`."""
        return next(
            (tree["kind"] for tree in self.figures.values() if tree.get("kind")), "perplexity"
        )

    def ppl(self, name: str) -> float | None:
        """The word perplexity on a set."""
        return self.figures.get(name, {}).get("word_ppl")

    def last(self, key: str):
        """The last value of `key` in its training: `step`, `epoch`, `tokens`, `seconds`; None where
        it is not known.
        """
        return next((line[key] for line in reversed(self.lines) if key in line), None)

    @property
    def tokens(self) -> int | None:
        """Tokens that training saw, repeated ones counted again; of an n-gram model those of its
        text.
        """
        return self.config.get("tokens") if self.family == NGRAM else self.last("tokens")

    @property
    def pace(self) -> float | None:
        """Tokens a second of training, validation and saving not counted."""
        tokens, seconds = next(
            ((one["tokens"], one["seconds"]) for one in reversed(self.lines) if "seconds" in one),
            (0, 0),
        )
        return tokens / seconds if seconds else None


def called(name: str) -> str:
    """The printed name of a model: `gcnn-14b` is GCNN-14B, `kn5` KN-5, `esulmo-bpe-500` ESuLMo
    bpe-500.
    """
    if found := re.fullmatch(r"kn-?(\d+)", name):
        return f"KN-{found[1]}"
    head, _, rest = name.partition("-")
    if head not in NAMES:
        return name
    return (
        f"{NAMES[head]}-{rest.upper()}"
        if re.fullmatch(r"\d+b?(-\d+)?", rest)
        else f"{NAMES[head]} {rest}".rstrip()
    )


def ordered(models: Iterable[Model]) -> list[Model]:
    """Models by family, then by name, numbers in it by size."""
    families = [*FAMILIES.values(), ESULMO, OTHER]

    def place(model):
        parts = re.split(r"(\d+)", model.name)  # text and numbers in turn
        return families.index(model.family), [
            int(part) if part.isdecimal() else part for part in parts
        ]

    return sorted(models, key=place)


def vocabulary_of(home: Path) -> Vocabulary | None:
    """What the model in directory `home` reads and predicts; None where it has no subword model."""
    folder = home / "subword"
    if not (folder / DESCRIPTION).exists():
        return None
    tree = read_yaml(folder / DESCRIPTION, {"scheme?": TEXT, "size?": WHOLE})
    if tree.get("scheme") != Spelled.scheme:
        return Vocabulary(str(tree.get("scheme")), int(tree.get("size", 0)))
    head, _, rest = read_bytes(folder / Spelled.file).partition(b"\n")
    try:
        made = json.loads(head)
        # the list of words: a line each, behind the pieces
        words = rest.count(b"\n", int(made["bytes"])) + len(SPECIALS)
        return Vocabulary(made["pieces"], int(tree.get("size", 0)), words)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{folder / Spelled.file}:1: damaged ({error}); train the model again"
        ) from None


def count_parameters(path: Path) -> int:
    """How many numbers in a safetensors file were learnt, by its header alone: 8 bytes of length,
    then JSON with every tensor's shape.
    """
    try:
        with open(path, "rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > path.stat().st_size:
                raise ValueError("its header is longer than the file")
            header = json.loads(stream.read(length))
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        learnt = [name for name in tensors if name.rpartition(".")[2] not in BUFFERS]
        return sum(math.prod(tensors[name]["shape"]) for name in learnt)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UserError(
            f"{path}: not a readable safetensors file ({error}); train again or copy it again"
        ) from None
