"""n-gram models as they are queried: by KenLM, with the normaliser they were estimated with."""

import contextlib
import hashlib
import math
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import kenlm
import numpy as np

from lmtools.config import build, load_yaml
from lmtools.errors import UserError
from lmtools.files import OPENERS, cannot, raw_lines, sha256
from lmtools.ngram.sentences import RESERVED
from lmtools.seal import check_seal
from lmtools.subword import Subword, load_subword

CONFIG = "config.yaml"
KIND = "ngram"
BINARY = b"mmap lm "  # how KenLM's binary files begin
SUBWORD = "subword"
LN10 = math.log(10)


@dataclass(frozen=True)
class Description:
    """What config.yaml in an n-gram model's directory says."""

    kind: str  # ngram
    order: int
    estimator: str  # lmtools or lmplz
    file: str  # what KenLM loads
    sha256: str  # of that file
    text_sha256: list[str]  # standard input has none
    sentences: int
    tokens: int  # </s> not counted
    reserved: int  # tokens left out of the text because they read <s>, </s> or <unk>
    counts: list[int]  # n-grams an order
    discounts: list[list[float]]  # D1, D2, D3+ an order
    fallback: list[int]  # orders whose discounts the text could not give
    version: str
    # closed vocabulary: the token of the model that stands for all words outside it
    unknown: str | None = None
    # as those of a neural model (lmtools.checkpoint.describe_model); files of older versions: none
    facts: dict | None = None

    @classmethod
    def load(cls, directory) -> "Description":
        """The description in `directory`; UserError if it holds no n-gram model."""
        path = Path(directory) / CONFIG
        tree = load_yaml(path)
        if tree.get("kind") != KIND:
            raise UserError(
                f"{path}: describes no n-gram model; give a directory that lmtools ngram wrote, or"
                " a KenLM file"
            )
        return build(
            cls,
            check_seal(
                tree, path, "copy the directory again, or estimate it again with lmtools ngram"
            ),
            path,
        )


class NgramModel:
    """An n-gram language model over tokens: words, or the pieces of its subword model.

    `order`; `subword`: None for a bare KenLM file, whose tokens are what white space parts; `hash`:
    hexadecimal SHA-256 of model file and subword model, for caches and signatures. Probabilities
    are natural logs; </s> counts as a token. A token that the model does not know has the
    probability of <unk>; with a closed vocabulary that of `unknown`, the token that stands for all
    such words and was trained like any other (lmtools.ngram.sentences.UNKNOWN). Both are reported
    as unknown. Pickles as its path.
    """

    def __init__(
        self, path, file, digest: str, subword: Subword | None, unknown: str | None = None
    ):
        self.path, self.subword = Path(path), subword
        self.hash = hashlib.sha256(
            f"{digest} {subword.hash if subword else ''}".encode()
        ).hexdigest()
        self.kenlm = open_kenlm(file)
        self.order = self.kenlm.order
        self.unknown = unknown

    def __reduce__(self):
        return type(self).load, (self.path,)

    @classmethod
    def load(cls, path) -> "NgramModel":
        """The model in a directory that `lmtools ngram` wrote, or in a bare KenLM binary or ARPA
        file (.gz, .xz); UserError if damaged.
        """
        path = Path(path)
        if not path.is_dir():
            return cls(path, path, sha256(path), None)
        description = Description.load(path)
        file = path / description.file
        digest = sha256(file)
        if digest != description.sha256:
            raise UserError(
                f"{file}: is not the file that {path / CONFIG} describes (damaged or changed);"
                " estimate it again"
            )
        return cls(path, file, digest, load_subword(path / SUBWORD), description.unknown)

    def tokens(self, text: str) -> list[str]:
        """What the model sees of `text`, after its normaliser; reserved symbols are unknown words,
        not ends of sentences.
        """
        tokens = self.subword.pieces(text) if self.subword else text.split()
        if self.unknown:
            return [
                (
                    token
                    if token in self.kenlm and token not in RESERVED and "\0" not in token
                    else self.unknown
                )
                for token in tokens
            ]
        if RESERVED.isdisjoint(tokens) and "\0" not in text:
            return tokens
        return ["<unk>" if token in RESERVED or "\0" in token else token for token in tokens]

    def conditional(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """(T,) natural-log probabilities of the tokens of `text` and of </s>, each given those
        before, and (T,) bool: unknown.
        """
        return self.query(self.tokens(text))

    def query(self, tokens: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """`conditional` of what `tokens` made of a text."""
        line = " ".join(tokens).encode("utf-8", "replace")
        scores, _, unknown = zip(*self.kenlm.full_scores(line), strict=True)
        unknown = np.array(unknown)
        if self.unknown:
            unknown[:-1] |= np.array([token == self.unknown for token in tokens], dtype=bool)
        return np.array(scores) * LN10, unknown

    def score(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N,) natural-log probabilities with </s>, tokens with </s>, unknown tokens of `texts`."""
        rows = [
            (float(log_prob.sum()), len(log_prob), int(unknown.sum()))
            for log_prob, unknown in map(self.conditional, texts)
        ]
        log_prob, tokens, unknown = zip(*rows, strict=True) if rows else ((), (), ())
        return (
            np.array(log_prob, dtype=np.float64),
            np.array(tokens, dtype=np.int64),
            np.array(unknown, dtype=np.int64),
        )


def open_kenlm(path: Path) -> kenlm.Model:
    """KenLM's model in `path`, loaded without chatter; UserError if KenLM cannot read it."""
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(uncompressed(path))
        if file == path and not binary(path):
            # refuses lines so long that KenLM would need many times as much memory
            deque(raw_lines(path), maxlen=0)
        try:
            return kenlm.Model(str(file), config)
        except (OSError, RuntimeError, ValueError) as error:
            cause = (
                "not an ARPA or KenLM file"
                if isinstance(error, ValueError)
                else str(error).rpartition(" threw ")[2]
            )
            raise UserError(
                f"{path}: KenLM cannot read it ({' '.join(cause.split())}); estimate or fetch it"
                " again"
            ) from None


@contextlib.contextmanager
def uncompressed(path: Path, directory=None) -> Iterator[Path]:
    """The file, or while it is asked for a plain copy of a compressed one (in `directory`), which
    KenLM does not read.
    """
    if path.suffix not in OPENERS:
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=".arpa", dir=directory) as plain:
        plain.writelines(raw for _, raw in raw_lines(path))
        plain.flush()
        yield Path(plain.name)


def binary(path: Path) -> bool:
    """Whether a file is one of KenLM's own form."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(BINARY)) == BINARY
    except OSError as error:
        raise cannot("read", path, error) from None
