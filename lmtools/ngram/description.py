"""config.yaml in the directory of an n-gram model: what the model is and was made of."""

from dataclasses import dataclass
from pathlib import Path

from lmtools.base.config import build, load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.seal import check_seal

CONFIG = "config.yaml"
KIND = "ngram"
SUBWORD = "subword"
# how words are parted that KenLM parted in training; a model's facts say so under SPACES
SPACES, AS_KENLM = "spaces", "kenlm"


@dataclass(frozen=True)
class Description:
    """Content of config.yaml in an n-gram model's directory."""

    kind: str  # ngram
    order: int
    estimator: str  # lmtools; in directories of older versions also lmplz
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
    # as those of a neural model (lmtools.models.checkpoint.describe_model); files of older
    # versions: none
    facts: dict | None = None

    @property
    def foreign(self) -> bool:
        """Return whether words are those that KenLM splits, as in the models behind this one."""
        return (self.facts or {}).get(SPACES) == AS_KENLM

    def verify(self, directory) -> str:
        """Return the SHA-256 of the model file in `directory`; UserError if it is another file."""
        file = Path(directory) / self.file
        digest = sha256(file)
        if digest != self.sha256:
            raise UserError(
                f"{file}: is not the file that {Path(directory) / CONFIG} describes (damaged or"
                " changed); estimate it again, or give this file by itself if the change was meant"
            )
        return digest

    @classmethod
    def load(cls, directory) -> "Description":
        """Load the description in `directory`; UserError if it holds no n-gram model."""
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


def is_ngram(lm) -> bool:
    """Return whether `lm` is the directory of an n-gram model."""
    path = Path(lm) / CONFIG
    return path.is_file() and load_yaml(path).get("kind") == KIND
