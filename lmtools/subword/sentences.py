"""SentencePiece models: byte-pair encoding and the unigram language model."""

import io
import random
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from lmtools.errors import UserError
from lmtools.subword.base import BOS, EOS, MASK, PAD, SPECIALS, UNK, Subword
from lmtools.text import MARK

SEED = 1
REMEMBERED = 200_000  # words
# characters: a longer "word" is noise; nothing is learnt from it and nothing remembered
WIDEST = 1000


class Words(dict):
    """The ids of each word, found when first asked for; no piece crosses a word, so that a text's
    ids are those of its words in a row.

    This is several times faster than segmenting whole texts, and a word's pieces never depend on
    rounding in its neighbourhood. `ids` says which of our ids each id of the processor is.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, ids: Sequence[int]):
        self.processor, self.ids = processor, ids

    def __missing__(self, word: str) -> list[int]:
        ids = [self.ids[i] for i in self.processor.encode(word, out_type=int)]
        if len(self) < REMEMBERED and len(word) <= WIDEST:
            self[word] = ids
        return ids


class SentencePiece(Subword):
    """Pieces inside words, `▁` before each word's first; sorted by probability or order of merging.

    The content may be another program's SentencePiece model: its pieces follow our specials in
    their order, its own specials fall away.
    """

    file = "subword.model"

    @classmethod
    def learn(
        cls, lines: Iterable[str], vocab_size: int | None, min_count: int, sentences: int
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
        ids = [UNK] * self.processor.get_piece_size()
        for number, i in enumerate(chosen, len(SPECIALS)):
            ids[i] = number
        self.known = Words(self.processor, ids)
        return (*SPECIALS, *self.processor.id_to_piece(chosen))

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        words = self.known
        return [[i for word in text.split() for i in words[word]] for text in texts]

    def surfaces(self, text: str) -> list[str]:
        return [
            piece for word in text.split() for piece in self.processor.encode(word, out_type=str)
        ]


class BpePieces(SentencePiece):
    """Byte-pair encoding over characters (Sennrich et al. 2016)."""

    scheme = "bpe"


class UnigramPieces(SentencePiece):
    """The most probable segmentation under a unigram language model of pieces (Kudo 2018)."""

    scheme = "unigram"


def ordinary(processor: sentencepiece.SentencePieceProcessor) -> list[int]:
    """The ids of the pieces that text is made of, in order: no control, unknown or unused ones."""
    special = (processor.is_control, processor.is_unknown, processor.is_unused)
    return [i for i in range(processor.get_piece_size()) if not any(test(i) for test in special)]


def refuse_unfit(processor: sentencepiece.SentencePieceProcessor, pieces: Sequence[str]) -> None:
    """ValueError unless the model segments word by word, `▁` first, into pieces that are text."""
    if clash := set(pieces) & set(SPECIALS):
        raise ValueError(f"its piece {min(clash)} is a special here")
    if any(MARK in piece.lstrip(MARK) for piece in pieces) or not processor.encode(
        "a", out_type=str
    )[0].startswith(MARK):
        raise ValueError(f"its pieces do not lie inside words with {MARK} before the first")
    if any(processor.is_byte(i) for i in range(processor.get_piece_size())):
        raise ValueError("it falls back on bytes")


def scheme_of(content: bytes) -> str:
    """Whether a SentencePiece model is bpe or unigram: BPE's scores are whole numbers."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    whole = all(processor.get_score(i).is_integer() for i in ordinary(processor))
    return (BpePieces if whole else UnigramPieces).scheme


def sample(lines: Iterable[str], count: int) -> list[str]:
    """At most `count` of `lines`, equally likely (reservoir sampling, fixed seed)."""
    chosen, draw = [], random.Random(SEED).random
    for seen, line in enumerate(lines, 1):
        if seen <= count:
            chosen.append(line)
        elif (place := int(draw() * seen)) < count:
            chosen[place] = line
    return chosen


def drop_wide(line: str) -> str:
    """`line` without words of more than WIDEST characters."""
    if len(line) <= WIDEST:
        return line
    return " ".join(word for word in line.split() if len(word) <= WIDEST)


def fit(text: Sequence[str], model_type: str, vocab_size: int) -> bytes:
    """The serialised SentencePiece model; one thread: the same text gives the same bytes."""
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
