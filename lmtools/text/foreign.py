"""What is given as text and is none: N-best lists, models, archives, markup. Any of them could be read as lines of words, and be learnt."""

import re

from lmtools.errors import UserError

HEAD = 1 << 16  # bytes that are looked at

PLAIN = "give text, one sentence a line"
LISTS = "take its hypotheses with lmtools convert --to kaldi-text, or give text"
COMPRESSED = "compressed ({}) under a name that does not say so"
# (beginning, what it is, what to do), the first that matches
MAGIC = (
    (b"\x1f\x8b", COMPRESSED.format("gzip"), "call it NAME.gz"),
    (b"\xfd7zXZ\0", COMPRESSED.format("xz"), "call it NAME.xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it, or compress it as .gz or .xz"),
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"mmap lm http://kheafield.com/code", "a KenLM binary, a language model", "give the text that it is made of"),
    (b"lmtools-corpus-1\n", "a corpus that is binarised already", "give the text that it is made of"),
    (b"# lmtools-scores ", "a file of scores", PLAIN),
    (b"NBestList", "SRILM's N-best lists", LISTS),
)
# What the beginning of a file looks like that is one or the other; white space of any kind may lead
SHAPES = (
    (rb"BZh[1-9]1AY&SY", "compressed by bzip2", "decompress it, or compress it as .gz or .xz"),
    (rb"[\[\s]*\{\s*\"[^\"\n]*\"\s*:", "JSON, such as N-best lists", LISTS),
    (rb"(?:[^\n]*\n){0,20}?\\data\\\s*\n\s*ngram\s+1\s*=", "an ARPA file, a language model", "give the text that it is made of"),
    (rb"(?i)\s*<(?:\?xml\b|!doctype\b|html\b|[a-z]\w*(?:\s+[\w:-]+\s*=\s*[\"'][^\"'\n]*[\"'])+\s*/?>)", "XML or HTML",
     "take the text out of it"),
    (rb"\S+ \|\|\| [^\n]* \|\|\| ", "Moses's or Marian's N-best lists", LISTS),
    (rb"(?:#[^\n]*\n)*VERSION=\d", "a lattice (HTK SLF)", "take texts with lmtools lattice rescore --text"),
    (rb"\S+[ \t]*\n\d+[ \t]+\d+[ \t]+\S+[ \t]+[-\d.]+,[-\d.]+", "Kaldi lattices", "take texts with lmtools lattice rescore --text"),
    (rb"\(\(\(\s*['\"]", "lattices (PLF)", "take texts with lmtools lattice rescore --text"),
    (rb"\S+ \0[B4]", "a Kaldi archive (binary)", PLAIN),
    (rb"\S+[ \t]+\[\s*[-+]?\d+\.\d", "a Kaldi archive of vectors or matrices", PLAIN),
    (rb"(?:\S+[ \t]+[-+]?\d+\.\d+(?:[eE][-+]?\d+)?(?:[ \t]+\d+)?[ \t]*\r?\n){5}", "a file of scores, a number a line", PLAIN),
)  # fmt: skip
PATTERNS = tuple((re.compile(pattern), what, remedy) for pattern, what, remedy in SHAPES)


def refuse_foreign(head: bytes, path) -> None:
    """UserError with what a file is that begins with `head` (decompressed) and holds no text; nothing is said of what might be text."""
    head = head[:HEAD].removeprefix(b"\xef\xbb\xbf")
    for magic, what, remedy in MAGIC:
        if head.startswith(magic):
            raise UserError(f"{path}: {what}, not text; {remedy}")
    for pattern, what, remedy in PATTERNS:
        if pattern.match(head):
            raise UserError(f"{path}:1: {what}, not text; {remedy}")


def refuse_nul(block: bytes, path, first: int) -> None:
    """UserError with the line of the first NUL byte of `block`, which begins with line `first`: no text has one."""
    if (place := block.find(b"\0")) >= 0:
        line = first + block.count(b"\n", 0, place)
        raise UserError(f"{path}:{line}: holds a NUL byte, as binary data does; give text, or remove it")
