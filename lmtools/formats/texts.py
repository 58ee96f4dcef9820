"""References and other texts by utterance, in any format that holds one text an utterance; Kaldi
text, which nothing tells from other lines, is looked at for what it may be instead. And plain text,
one sentence a line, as language models are trained on it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.formats import FORMATS, kaldi_text
from lmtools.formats.checks import encodable
from lmtools.formats.registry import HEAD, is_pipe, parse_specifier, read_beginning, read_first_line
from lmtools.text.blocks import read_text

KALDI = "kaldi-text"
TEXTS = {name: form for name, form in FORMATS.items() if not form.lists}
# Kaldi's files of a line an utterance which are no text, by what stands after each id
OTHERS = {
    "utt2dur, the seconds of each utterance": re.compile(r"\d+\.\d+"),
    "segments, the times of each utterance": re.compile(
        r"\S+ \d+(\.\d+)? (\d+\.\d+|-1(\.0*)?)( \d| [A-Z])?"
    ),
    "wav.scp, the recordings": re.compile(
        r".*\||\S+\.(wav|flac|mp3|ogg|opus|sph|m4a)", re.IGNORECASE
    ),
    "an scp file, places in archives": re.compile(r"\S+:\d+(\[.*\])?"),
}
# Files that no line of an utterance begins, by how they begin: what they are, and what to do
LINES = "give lines `utt w1 w2 ...`"
OBJECTS = LINES + """, or objects such as {"utt": "u1", "text": "w1 w2"}"""
SHAPES = {
    r"[\[\s]*\{\s*\"": ("JSON of no known format", OBJECTS),
    r"WEBVTT\b|\s*[0-9]+\s*\n[0-9]+:[0-9:]+[.,][0-9]+ -->": ("subtitles (SubRip, WebVTT)", LINES),
    r"SPEAKER \S+ [0-9]+ [0-9.]+ ": ("RTTM, which says who speaks when", LINES),
    r"%WER ": ("a report of errors", "give the texts that were compared"),
    r"File: \S": ("what Vosk prints", "give its JSON, or lines `utt w1 w2 ...`"),
    r"(?:[^\n]*\([^()\s]*[0-9][^()\s]*(?: -?[0-9]+)?\)\r?(?:\n|\Z))+\Z": (
        "trn, ids in parentheses behind the words",
        "let its name end in .trn",
    ),
}
FEWEST = 3  # lines whose first words may show that they are no ids


def read_texts(path, plain: str = "--ref-lines") -> dict[str, str]:
    """Return the text of each utterance, in a format of TEXTS; UserError for what looks unlike."""
    name = recognise_text(path)
    if name == KALDI:
        return read_kaldi(path, plain)
    return {
        nbest.utt: nbest.hyps[0].text if nbest.ref is None else nbest.ref
        for nbest in TEXTS[name].read(path)
    }


def recognise_text(path) -> str:
    """Return the format of TEXTS that recognises a file, else Kaldi text, as of a pipe."""
    if path == "-" or parse_specifier(path) or is_pipe(path) or Path(path).is_dir():
        return KALDI
    first = read_first_line(path)
    names = (name for name, form in TEXTS.items() if form.recognises(Path(path), first))
    return next(names, KALDI)


def read_kaldi(path, plain: str, otherwise: str = "give ids that are no words") -> dict[str, str]:
    """Return the texts of a file taken for Kaldi text, or of `text` in a directory of data;
    `otherwise`: what to do with first words.
    """
    folder, path = path, Path(path, "text") if Path(path).is_dir() else path
    if path != folder and not path.is_file():
        raise UserError(f"{folder}: is a directory without Kaldi's `text`; give a file of texts")
    refuse_shapes(path)
    remedy = f"keep one of them, or give the file with {plain} if its lines have no ids"
    texts = {utt: text for _, utt, text in kaldi_text.rows(path, repeated=remedy)}
    for what, mark in OTHERS.items():
        if texts and all(map(mark.fullmatch, texts.values())):
            raise UserError(f"{path}: looks like Kaldi's {what}; give lines `utt w1 w2 ...`")
    if lacks_ids(texts):
        raise UserError(
            f"{path}: first words such as {next(iter(texts))!r} stand where ids are due; give the"
            f" file with {plain} if its lines have no ids, or {otherwise}"
        )
    return texts


def refuse_shapes(path) -> None:
    """Raise UserError with what a file is that is no Kaldi text and that no format recognises."""
    if path == "-" or parse_specifier(path) or not os.path.isfile(path):
        return
    head = read_beginning(path)
    head = head.rpartition(b"\n")[0] if len(head) == HEAD else head
    head = head.decode("utf-8-sig", "replace")
    for mark, (what, remedy) in SHAPES.items():
        if re.match(mark, head) and FORMATS.detect(path, KALDI) == KALDI:
            raise UserError(f"{path}:1: is {what}; {remedy}")


def lacks_ids(texts: Mapping[str, str]) -> bool:
    """Return whether ids are first words: letters that stand in texts, or texts are sentences."""
    if len(texts) < FEWEST or not all(utt.replace("'", "").isalpha() for utt in texts):
        return False
    words = {word.lower() for text in texts.values() for word in text.split()}
    inside = sum(utt.lower() in words for utt in texts)
    return 2 * inside >= len(texts) or all(
        text.endswith((".", "?", "!")) for text in texts.values()
    )


def read_sentences(path) -> list[str]:
    """Read the lines of `path` without white space at their ends; empty ones keep their numbers."""
    return [line.strip() for _, line in read_text(path, nul=True)]


def write_sentences(sentences: Iterable[str], path) -> None:
    """Write one sentence a line; UserError if one holds a line break."""
    with atomic_text(path) as out:
        for number, sentence in enumerate(sentences, 1):
            where = f"{path}:{number}"
            if "\n" in sentence or "\r" in sentence:
                raise UserError(f"{where}: a line break inside a sentence; replace it by a space")
            out.write(encodable(sentence, where) + "\n")
