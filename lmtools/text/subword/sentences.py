"""SentencePiece models: byte-pair encoding and the unigram language model."""

import io
import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice

import sentencepiece

from lmtools.base.errors import UserError
from lmtools.text import MARK
from lmtools.text.subword.base import BOS, EOS, MASK, PAD, SPECIALS, UNK, Subword

SEED = 1
TRIED = 200  # pieces that may be a word by themselves
REMEMBERED = 200_000  # words
# characters: a longer "word" is noise; nothing is learnt from it and nothing remembered
WIDEST = 1000


class Words(dict):
    """The ids of each word, found when first asked for: no piece crosses a word. `cut` gives the
    processor's ids, `ids` ours.
    """

    def __init__(self, cut: Callable[[str, type], list], ids: Sequence[int]):
        self.cut, self.ids = cut, ids

    def __missing__(self, word: str) -> list[int]:
        ids = [self.ids[i] for i in self.cut(word, int)]
        if len(self) < REMEMBERED and len(word) <= WIDEST:
            self[word] = ids
        return ids


class SentencePiece(Subword):
    """Pieces inside words, `▁` before each word's first; sorted by probability or order of merging.

    The content may be another program's SentencePiece model: its pieces follow our specials in
    their order, its own specials, and symbols called as ours, fall away. Unknown characters are its
    bytes if it has these; a text's first word lacks the `▁` if the model puts none there (`dummy`).
    """

    file = "subword.model"

    @classmethod
    def learn(
        cls, lines: Iterable[str], vocab_size: int | None, min_count=1, sentences=1_000_000
    ) -> tuple[bytes, None]:
        if vocab_size is None:
            raise UserError(
                f"{cls.scheme} needs the size of its vocabulary; give --vocab-size, as in"
                " --vocab-size 2000"
            )
        if min_count > 1:
            raise UserError(
                f"--min-count is for word and char vocabularies; leave it out with {cls.scheme}"
            )
        text = sample((short for line in lines if (short := drop_wide(line))), sentences)
        if not text:
            raise UserError("the text holds no sentence; give text with one sentence a line")
        return fit(text, cls.scheme, vocab_size), None

    def read(self, content: bytes) -> tuple[str, ...]:
        if not content:
            raise ValueError("the model is empty")
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        chosen = ordinary(self.processor)
        refuse_unfit(self.processor, [self.processor.id_to_piece(i) for i in chosen])
        self.anchor = find_anchor(self.processor, chosen)
        self.dummy = self.cut(self.anchor)[0].startswith(MARK)
        ids = [UNK] * self.processor.get_piece_size()
        self.bytes: dict[int, int] = {}
        for number, i in enumerate(chosen, len(SPECIALS)):
            ids[i] = number
            if self.processor.is_byte(i):
                self.bytes[number] = int(self.processor.id_to_piece(i)[3:-1], 16)  # <0x41>
        self.known = Words(self.cut, ids)
        return (*SPECIALS, *self.processor.id_to_piece(chosen))

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        words = self.known
        return [[i for word in self.split(text) for i in words[word]] for text in texts]

    def surfaces(self, text: str) -> list[str]:
        return [piece for word in self.split(text) for piece in self.cut(word)]

    def cut(self, word: str, kind: type = str) -> list:
        """Return pieces (str) or ids (int) of a word, with the blank that `split` marks as `▁`."""
        encode = self.processor.encode
        if not word.startswith(MARK):
            return encode(word, out_type=kind)
        before = len(encode(self.anchor, out_type=kind))
        return encode(f"{self.anchor} {word[1:]}", out_type=kind)[before:]

    def split(self, text: str) -> list[str]:
        """Return the words as `cut` takes them, with `▁` but for a first one without blank."""
        words = text.split()
        if self.dummy:
            return words
        bare = 0 if text[:1].isspace() else 1
        return words[:bare] + [MARK + word for word in words[bare:]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`, runs of bytes as the characters that they are."""
        if not self.bytes:
            return super().decode(ids)
        parts = []
        for is_byte, run in groupby(ids, key=self.bytes.__contains__):
            if is_byte:
                parts.append(bytes(self.bytes[i] for i in run).decode("utf-8", "replace"))
            else:
                parts += [self.vocabulary[i] for i in run if i not in (PAD, EOS, BOS, MASK)]
        return self.joiner.join(parts).replace(MARK, " ").strip()


class BpePieces(SentencePiece):
    """Byte-pair encoding over characters (Sennrich et al. 2016)."""

    scheme = "bpe"


class UnigramPieces(SentencePiece):
    """The most probable segmentation under a unigram language model of pieces (Kudo 2018)."""

    scheme = "unigram"


def ordinary(processor: sentencepiece.SentencePieceProcessor) -> list[int]:
    """Return ids of pieces that text is made of: no control, unknown, unused, special ones."""
    special = (processor.is_control, processor.is_unknown, processor.is_unused)
    return [
        i
        for i in range(processor.get_piece_size())
        if not any(test(i) for test in special) and processor.id_to_piece(i) not in SPECIALS
    ]


def refuse_unfit(processor: sentencepiece.SentencePieceProcessor, pieces: Sequence[str]) -> None:
    """Raise ValueError unless the model segments word by word, `▁` before each but the first."""
    if any(MARK in piece.lstrip(MARK) for piece in pieces):
        raise ValueError(f"its pieces do not lie inside words with {MARK} before the first")
    if MARK not in pieces and any(map(processor.is_byte, range(processor.get_piece_size()))):
        raise ValueError(f"it falls back on bytes, and {MARK} is no piece of it")


def find_anchor(processor: sentencepiece.SentencePieceProcessor, chosen: Sequence[int]) -> str:
    """Return a word spelled as written, `▁` for the blank before it; ValueError if none is."""
    words = (processor.id_to_piece(i).strip(MARK) for i in chosen if not processor.is_byte(i))
    for word in islice(filter(None, words), TRIED):
        spelled = "".join(processor.encode(f"{word} {word}", out_type=str))
        if spelled.removeprefix(MARK) == f"{word}{MARK}{word}":
            return word
    raise ValueError(f"its pieces do not lie inside words with {MARK} before the first")


def scheme_of(content: bytes) -> str:
    """Return bpe (its scores are whole numbers) or unigram; an error for neither."""
    if not content:
        raise ValueError("the model is empty")
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    whole = all(processor.get_score(i).is_integer() for i in ordinary(processor))
    return (BpePieces if whole else UnigramPieces).scheme


def sample(lines: Iterable[str], count: int) -> list[str]:
    """Return at most `count` of `lines`, equally likely (reservoir sampling, fixed seed)."""
    chosen, draw = [], random.Random(SEED).random
    for seen, line in enumerate(lines, 1):
        if seen <= count:
            chosen.append(line)
        elif (place := int(draw() * seen)) < count:
            chosen[place] = line
    return chosen


def drop_wide(line: str) -> str:
    """Return `line` without words of more than WIDEST characters."""
    if len(line) <= WIDEST:
        return line
    return " ".join(word for word in line.split() if len(word) <= WIDEST)


def fit(text: Sequence[str], model_type: str, vocab_size: int) -> bytes:
    """Return the serialised SentencePiece model; one thread: the same text gives the same bytes."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type=model_type,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNK,
            bos_id=BOS,
            pad_piece=SPECIALS[PAD],
            # a control symbol, unlike a user-defined one, is never found in text
            control_symbols=[SPECIALS[MASK]],
            character_coverage=1.0,
            normalization_rule_name="identity",
            split_digits=False,
            byte_fallback=False,
            max_sentence_length=1 << 30,
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
            raise UserError(
                f"a vocabulary of {vocab_size} cannot hold the text's characters; give --vocab-size"
                f" {needed[1]} or more, or normalise more"
            ) from None
        raise
    return model.getvalue()
