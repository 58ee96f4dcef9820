"""N-gram models as they are queried, by KenLM, and config.yaml in their directories."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.config import build, load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import ENCODING, sha256
from lmtools.base.seal import check_seal
from lmtools.ngram.kenlm_files import kenlm, open_kenlm
from lmtools.ngram.sentences import LOWEST, RESERVED, SYMBOLS, UNK, split_words
from lmtools.text.subword import Subword, load_subword

CONFIG = "config.yaml"
KIND = "ngram"
SUBWORD = "subword"
# how words are parted that KenLM parted in training; a model's facts say so under SPACES
SPACES, AS_KENLM = "spaces", "kenlm"
LN10 = math.log(10)
# log10 p of an unknown word where the model has none (no <unk>, a closed vocabulary): KenLM's -100
# would decide a list by one word
UNSEEN = -7.0
ABSURD = 1.0  # log10 of a probability that no rounding explains


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


class ModelNote(NamedTuple):
    """Note for users on a model: a place in its files, a cause and a remedy."""

    place: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.cause}; {self.remedy}"


class NgramModel:
    """An n-gram language model over tokens: words, or the pieces of its subword model.

    `subword`: None for a bare KenLM file; `foreign`: its tokens are the words that KenLM parts;
    `hash`: SHA-256 of model file and subword model. Natural logs; </s> counts as a token. A token
    that is not known has the probability of <unk>, or of `unknown` in a closed vocabulary, or
    UNSEEN where there is neither (`lacks_unknown`). Pickles as its path.
    """

    def __init__(
        self,
        path,
        file,
        digest: str,
        subword: Subword | None,
        unknown: str | None = None,
        foreign: bool = True,
    ):
        self.path, self.subword, self.foreign = Path(path), subword, foreign
        self.hash = hashlib.sha256(
            f"{digest} {subword.hash if subword else ''}".encode()
        ).hexdigest()
        self.kenlm, self.odd = open_kenlm(file)
        self.order = self.kenlm.order
        self.unknown = unknown
        self.given = self.unigram(SYMBOLS[UNK])
        self.lacks_unknown = unknown is None and self.given <= LOWEST

    def __reduce__(self):
        return type(self).load, (self.path,)

    @classmethod
    def load(cls, path) -> "NgramModel":
        """Load a directory of `lmtools ngram`, a KenLM binary or an ARPA file; else UserError."""
        path = Path(path)
        if not path.is_dir():
            return cls(path, path, sha256(path), None)
        description = Description.load(path)
        file = path / description.file
        digest = description.verify(path)
        subword = load_subword(path / SUBWORD)
        return cls(
            path, file, digest, subword, unknown=description.unknown, foreign=description.foreign
        )

    @property
    def notes(self) -> list[ModelNote]:
        notes = []
        if self.lacks_unknown:
            cause = (
                "has no probability of unknown words (no <unk>, a closed vocabulary): each has"
                f" {10**UNSEEN:g}"
            )
            remedy = "--lm LM,oov_penalty=P takes P nats more from each"
            notes.append(ModelNote(str(self.path), cause, remedy))
        if self.odd:
            cause = "not UTF-8, so that no text has its words"
            notes.append(ModelNote(f"{self.path}:{self.odd}", cause, ENCODING))
        return notes

    def unigram(self, token: str) -> float:
        before = kenlm.State()
        self.kenlm.NullContextWrite(before)
        return self.kenlm.BaseScore(before, token, kenlm.State())

    def normalise(self, text: str) -> str:
        return " ".join(split_words(text)) if self.foreign else self.subword.normaliser(text)

    def split(self, text: str) -> list[str]:
        return split_words(text) if self.foreign else text.split()

    def tokens(self, text: str) -> list[str]:
        """Return the tokens the model sees of a normalised text; reserved ones are unknown."""
        tokens = split_words(text) if self.foreign else self.subword.pieces(text)
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
        """Return (T,) natural-log probabilities of tokens and </s>, and (T,) bool: unknown."""
        return self.query(self.tokens(text))

    def query(self, tokens: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return `conditional` of what `tokens` made of a text."""
        line = " ".join(tokens).encode("utf-8", "replace")
        if b"\v" in line or b"\f" in line:  # which full_scores would split at
            scores, unknown = self.walk(tokens)
        else:
            scores, _, unknown = zip(*self.kenlm.full_scores(line), strict=True)
        scores, unknown = np.array(scores), np.array(unknown)
        if self.unknown:
            unknown[:-1] |= np.array([token == self.unknown for token in tokens], dtype=bool)
        if self.lacks_unknown:
            scores[unknown] = self.replace_unseen(scores[unknown])
        if scores.max() > ABSURD:
            token = [*tokens, "</s>"][int(scores.argmax())]
            raise UserError(
                f"{self.path}: gives {token:.40} 10^{scores.max():.3g} for a probability; its"
                " back-off weights are damaged: fetch or estimate it again"
            )
        return scores * LN10, unknown

    def find_unknown(self, tokens: Sequence[str]) -> np.ndarray:
        """Return which tokens are unknown, bool (tokens,), as `query` does, without scores."""
        known = [token.encode("utf-8", "replace") in self.kenlm for token in tokens]
        unknown = ~np.array(known, dtype=bool)
        if self.unknown:
            unknown |= np.array([token == self.unknown for token in tokens], dtype=bool)
        return unknown

    def walk(self, tokens: Sequence[str]) -> tuple[list[float], list[bool]]:
        """Return log10 p of each token and of </s>, and whether each is unknown, token by token."""
        state, rows = kenlm.State(), []
        self.kenlm.BeginSentenceWrite(state)
        for token in (*tokens, "</s>"):
            before, state = state, kenlm.State()
            word = token.encode("utf-8", "replace").decode()
            row = self.kenlm.BaseFullScore(before, word, state)
            rows.append((row.log_prob, row.oov))
        scores, unknown = zip(*rows, strict=True)
        return list(scores), list(unknown)

    def step(self, before: "kenlm.State", token: str, after: "kenlm.State") -> float:
        """Return log10 p of a token after the state `before`, which leads to `after`."""
        word = token.encode("utf-8", "replace").decode()
        if not self.lacks_unknown:
            return self.kenlm.BaseScore(before, word, after)
        row = self.kenlm.BaseFullScore(before, word, after)
        return self.replace_unseen(row.log_prob) if row.oov else row.log_prob

    def replace_unseen(self, scores):
        """Return log10 p of unknown words: UNSEEN for KenLM's <unk>; back-off weights stay."""
        if math.isfinite(self.given):
            return scores - self.given + UNSEEN
        return np.full_like(scores, UNSEEN)

    def score(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (N,) natural-log probabilities, tokens, both with </s>, and unknown tokens."""
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
