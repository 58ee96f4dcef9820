#!/usr/bin/env python3
"""prepare.py text|gbw|wikitext103|wikitext2 RAW DATA [paragraph|article]: from what stage 0 got to
DATA/{train,valid,test}/text, a sequence a line.

A sequence, between <s> and </s>, is a sentence of One Billion Word and of the mini corpus, a line
of a text of one's own, and a paragraph or a heading of WikiText, or a whole article of it. Text
stays as published; archives are read as they stream, and nothing of them is unpacked but the three
texts.
"""

import contextlib
import itertools
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_binary, copy_file
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import unpacking

PARTS = ("train", "valid", "test")
# text without a test set: the last line in so many of the training text is for testing (of the
# Bible: Revelation and the end of Jude)
TEST_SHARE = 80
# words in a row that such a test line may not share with training or validation text, as in
# egs/librispeech/make_mini/mini_text.py
RUN = 8
SHARDS = range(1, 100)  # gbw: training shards; shard 0 is what the held-out shards were cut from
MEMBERS = {
    "train": (r"news\.en-(\d{5})-of-00100", SHARDS),
    "held-out": (r"news\.en\.heldout-(\d{5})-of-00050", (0, 1)),
}
# gbw: of the second held-out shard; the first is the test set, as in the papers
VALID_LINES = 3_000
BLOCK = 1 << 20
# wikitext: the heading of an article; those of its sections have more signs, and a formula that
# looks like one has no blank line around it
TITLE = re.compile(rb"= (?!=).+(?<!=) =")


def text(raw: Path, data: Path) -> None:
    """Write a text of one's own, its three parts as they are; without a test.txt `cut_test`."""
    if not (raw / "test.txt").exists():
        cut_test(raw, data)
    else:
        for part in PARTS:
            copy_file(raw / f"{part}.txt", data / part / "text")


def cut_test(raw: Path, data: Path) -> None:
    """Write a text whose test set is the end of its training text, without parallel passages; its
    validation text as it is.
    """
    lines = (raw / "train.txt").read_bytes().splitlines(keepends=True)
    cut = len(lines) - len(lines) // TEST_SHARE
    wanted = {run for line in lines[cut:] for run in runs(line)}
    with open(raw / "valid.txt", "rb") as valid:
        seen = {
            run
            for line in itertools.chain(lines[:cut], valid)
            for run in runs(line)
            if run in wanted
        }
    test = [line for line in lines[cut:] if seen.isdisjoint(runs(line))]
    if not test:
        raise UserError(
            f"{raw / 'train.txt'}: too short to keep a part of it for testing; give {TEST_SHARE}"
            " lines or more"
        )
    with atomic_binary(data / "train/text") as text:
        text.writelines(lines[:cut])
    copy_file(raw / "valid.txt", data / "valid/text")
    with atomic_binary(data / "test/text") as text:
        text.writelines(test)


def runs(line: bytes) -> Iterator[bytes]:
    """Yield every run of RUN words; and the line itself between ends, so that a shorter one matches
    only its equal.
    """
    words = line.split()
    for start in range(len(words) - RUN + 1):
        yield b" ".join(words[start : start + RUN])
    yield b"<" + b" ".join(words) + b">"


def gbw(raw: Path, data: Path) -> None:
    """Write One Billion Word: all training shards in the archive's order; held-out shard 0 tests,
    the beginning of shard 1 validates.
    """
    archive = only(raw, "*.tar.gz")
    names = set()
    with (
        streams(data) as (train, valid, test),
        unpacking(archive),
        tarfile.open(archive, "r|gz") as members,
    ):
        for member in members:
            kind, shard = place(member.name)
            if not member.isfile() or kind is None:
                continue
            stream = members.extractfile(member)
            names.add((kind, shard))
            if kind == "train":
                append(blocks(stream), train)
            else:
                append(
                    stream if shard == 0 else itertools.islice(stream, VALID_LINES),
                    (test, valid)[shard],
                )
        if (
            missing := {*(("train", shard) for shard in SHARDS), ("held-out", 0), ("held-out", 1)}
            - names
        ):
            kind, shard = min(missing)
            raise UserError(
                f"{archive}: lacks {len(missing)} shards, such as {kind} shard {shard}; fetch it"
                " again"
            )


def place(name: str) -> tuple[str | None, int]:
    """Return whether a member of the archive is a training or a held-out shard that is used, and
    its number.
    """
    for kind, (pattern, used) in MEMBERS.items():
        matched = re.fullmatch(pattern, name.rpartition("/")[2])
        if matched and int(matched[1]) in used:
            return kind, int(matched[1])
    return None, 0


def wikitext(raw: Path, data: Path, line: str = "paragraph") -> None:
    """Write WikiText: its three texts without blank lines, `<unk>` stays; headings are sequences
    like paragraphs, or an article is one with all that stands under its title.
    """
    archive = only(raw, "*.zip")
    with streams(data) as texts, unpacking(archive), zipfile.ZipFile(archive) as members:
        names = {name.rpartition("/")[2]: name for name in members.namelist()}
        for part, text in zip(PARTS, texts, strict=True):
            if f"wiki.{part}.tokens" not in names:
                raise UserError(
                    f"{archive}: lacks wiki.{part}.tokens; fetch the tokenised corpus, not the"
                    " raw one"
                )
            with members.open(names[f"wiki.{part}.tokens"]) as stream:
                lines = map(bytes.strip, stream)
                whole = articles(lines) if line == "article" else filter(None, lines)
                text.writelines(words + b"\n" for words in whole)


def articles(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of each article as one; what stands before the first title is one too."""
    article: list[bytes] = []
    for before, line, after in windowed(lines):
        if article and not before and not after and TITLE.fullmatch(line):
            yield b" ".join(article)
            article = []
        if line:
            article.append(line)
    if article:
        yield b" ".join(article)


def windowed(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield each line with those before and after it, which are empty beyond the ends."""
    before, line = b"", None
    for after in itertools.chain(lines, [b""]):
        if line is not None:
            yield before, line, after
            before = line
        line = after


def only(raw: Path, pattern: str) -> Path:
    """Return the one file in `raw` of that name."""
    paths = sorted(raw.glob(pattern))
    if len(paths) != 1:
        raise UserError(f"{raw}: expected one {pattern}, found {len(paths)}; run stage 0")
    return paths[0]


@contextlib.contextmanager
def streams(data: Path):
    """Yield the texts of PARTS, which appear together when all are written."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(atomic_binary(data / part / "text")) for part in PARTS]


def blocks(stream) -> Iterator[bytes]:
    """Return what is in `stream`, piece by piece."""
    return iter(lambda: stream.read(BLOCK), b"")


def append(pieces: Iterable[bytes], text) -> None:
    """Write `pieces` to `text`, with a line feed at the end where they have none."""
    last = b"\n"
    for last in pieces:
        text.write(last)
    if not last.endswith(b"\n"):
        text.write(b"\n")


CORPORA = {"text": text, "gbw": gbw, "wikitext103": wikitext, "wikitext2": wikitext}

if __name__ == "__main__":
    corpus, raw, data, *line = sys.argv[1:]
    with exit_with_message():
        CORPORA[corpus](Path(raw), Path(data), *line)
