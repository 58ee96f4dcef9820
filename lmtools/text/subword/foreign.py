"""The tokenizer of a Hugging Face directory as a subword model, so that its text becomes a corpus
as any other does.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import read_bytes
from lmtools.base.specs import HF
from lmtools.text import MARK, Normaliser
from lmtools.text.subword.base import SPECIALS, UNK, Subword


class ForeignPieces(Subword):
    """Ids are the tokenizer's own behind our specials; its unknown token is ours."""

    scheme = "huggingface"
    file = "tokenizer.json"

    @classmethod
    def load(cls, directory: str) -> "ForeignPieces":
        """Return the tokenizer of `hf:DIR`; UserError where there is none in one file."""
        path = Path(directory.removeprefix(HF)) / cls.file
        if not path.is_file():
            raise UserError(
                f"{directory}: no {cls.file}; load its tokenizer with transformers and save it"
                " again by save_pretrained"
            )
        try:
            return cls(read_bytes(path), Normaliser())
        except ImportError as error:
            raise explain_missing(error, f"{directory}:") from None
        except ValueError as error:
            raise UserError(f"{path}: {error}; copy it again") from None

    def read(self, content: bytes) -> tuple[str, ...]:
        from tokenizers import Tokenizer

        try:
            self.tokenizer = Tokenizer.from_str(content.decode())
        except Exception as error:  # tokenizers raises Exception itself
            raise ValueError(f"not a tokenizer ({' '.join(str(error).split())[:100]})") from None
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        ids = self.tokenizer.get_vocab(with_added_tokens=True)
        pieces = [f"<{i}>" for i in range(1 + max(ids.values(), default=-1))]
        for piece, i in ids.items():
            pieces[i] = piece
        names = (getattr(self.tokenizer.model, "unk_token", None),)
        self.places = np.arange(len(pieces)) + len(SPECIALS)
        self.places[[ids[name] for name in names if name in ids]] = UNK
        return (*SPECIALS, *pieces)

    def beginnings(self) -> np.ndarray:
        begins = np.array([piece.startswith((MARK, "Ġ")) for piece in self.vocabulary])
        if not begins.any():  # whole words, or pieces of which those inside words are marked
            begins = np.array([not piece.startswith("##") for piece in self.vocabulary])
        return begins

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [self.places[each.ids].tolist() if each.ids else [] for each in encoded]

    def surfaces(self, text: str) -> list[str]:
        return self.tokenizer.encode(text, add_special_tokens=False).tokens

    def decode(self, ids) -> str:
        return self.tokenizer.decode([i - len(SPECIALS) for i in ids if i >= len(SPECIALS)])
