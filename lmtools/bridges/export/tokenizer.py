"""Our subword models as fast tokenizers of Hugging Face (tokenizer.json): the same normalisation,
the same ids.
"""

import re
from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from lmtools.base.errors import UserError
from lmtools.text import MARK, Normaliser
from lmtools.text.normaliser import APOSTROPHES, CASINGS
from lmtools.text.subword import BOS, EOS, SPECIALS, UNK, Subword
from lmtools.text.subword.lists import Char, Word
from lmtools.text.subword.sentences import BpePieces, SentencePiece, ordinary

NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # types of SentencePiece's pieces
SPACES = Regex(r"[\s\x{1c}-\x{1f}\x{85}]+")  # what Python's split() splits at


def make_tokenizer(subword: Subword, source) -> Tokenizer:
    """Return the tokenizer that gives the ids of `subword`, with <s> and </s> around them."""
    if subword.normaliser.whisper != "none":
        raise UserError(
            f"{source}: its normaliser {subword.normaliser.spec} is a program, which no"
            " tokenizer.json can hold; export --to onnx, and normalise texts before"
        )
    letters = set("".join(subword.vocabulary))
    steps = normaliser_steps(subword.normaliser, letters)
    if isinstance(subword, SentencePiece):
        steps += inner_normaliser(subword.content, source)
        tokenizer = Tokenizer(make_pieces(subword))
        first = "always" if subword.dummy else "never"
        words: pre_tokenizers.PreTokenizer = pre_tokenizers.Metaspace(prepend_scheme=first)
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=first)
    elif isinstance(subword, Word | Char):
        ids = {piece: i for i, piece in enumerate(subword.vocabulary)}
        tokenizer = Tokenizer(models.WordLevel(ids, unk_token=SPECIALS[UNK]))
        words = pre_tokenizers.WhitespaceSplit()
        if isinstance(subword, Char):
            steps.append(normalizers.Replace(" ", MARK))
            words = pre_tokenizers.Split(Regex("(?m)."), "isolated")
            tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace(MARK, " ")])
    else:
        raise UserError(
            f"{source}: a {subword.scheme} vocabulary has no tokenizer.json; export a model of"
            " pieces, words or characters"
        )
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = words
    begin, end = SPECIALS[BOS], SPECIALS[EOS]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} $B {end}",
        special_tokens=[(begin, BOS), (end, EOS)],
    )
    return tokenizer


def make_pieces(subword: SentencePiece) -> models.Model:
    processor, pieces = subword.processor, subword.vocabulary
    if not isinstance(subword, BpePieces):
        scores = [processor.get_score(i) for i in ordinary(processor)]
        return models.Unigram(
            list(zip(pieces, [*[0.0] * len(SPECIALS), *scores], strict=True)), UNK, False
        )
    ids = {piece: i for i, piece in enumerate(pieces)}
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in ordinary(processor)}
    # the piece that a merge makes has the score; single characters have lower ones
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    merges = [
        (piece[:cut], piece[cut:])
        for piece in ranked
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    return models.BPE(ids, merges, unk_token=SPECIALS[UNK], fuse_unk=True)


def normaliser_steps(normaliser: Normaliser, letters: set[str]) -> list[normalizers.Normalizer]:
    """Return the steps of a normaliser; upper case only of what becomes one of `letters`."""
    replace, marks = normalizers.Replace, re.escape(APOSTROPHES)
    steps: list[normalizers.Normalizer] = [replace(MARK, " ")]
    if normaliser.apostrophe != "keep":
        to = "'" if normaliser.apostrophe == "straight" else ""
        steps.append(replace(Regex(f"[{marks}]"), to))
    if normaliser.unicode_form != "none":
        steps.append(getattr(normalizers, normaliser.unicode_form)())
    if normaliser.case != "keep":
        pairs = CASINGS[normaliser.language][normaliser.case]
        steps += [replace(old, new) for old, new in pairs]
    if normaliser.case == "lower":
        steps.append(normalizers.Lowercase())
    elif normaliser.case == "upper":
        steps += [replace(lower, upper) for lower, upper in upper_case(letters | set(APOSTROPHES))]
    if normaliser.punctuation == "strip":
        steps.append(replace(Regex(rf"[[\p{{P}}\p{{S}}]&&[^{marks}]]"), " "))
        steps.append(replace(Regex(f"[{marks}]{{2,}}"), " "))
        steps.append(replace(Regex(rf"(?<!\S)[{marks}]+|[{marks}]+(?!\S)"), ""))
    return [*steps, replace(SPACES, " "), normalizers.Strip()]


def upper_case(letters: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the characters whose upper case is made of `letters`, and that."""
    for point in range(0x110000):
        upper = chr(point).upper()
        if upper != chr(point) and letters.issuperset(upper):
            yield chr(point), upper


def inner_normaliser(content: bytes, source) -> list[normalizers.Normalizer]:
    """Return the normalisation inside a SentencePiece model; UserError for other pieces."""
    kinds, steps = set(), []
    for field, message in read_fields(content):
        parts = dict(read_fields(message)) if field in (1, 3) else {}
        if field == 1:
            kinds.add(parts.get(3, NORMAL))
        elif field == 3 and parts.get(2):
            steps.append(normalizers.Precompiled(parts[2]))
    if kinds - {NORMAL, UNKNOWN, CONTROL}:
        raise UserError(
            f"{source}: its SentencePiece model has user-defined or unused pieces, or bytes, which"
            " fast tokenizers treat otherwise; export --to onnx"
        )
    return steps


def read_fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and value of each field of a protocol buffer; fixed-width values stay bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[place : place + size]
        place += size
