#!/usr/bin/env python3
"""mini_sets.py PAIRS OUT: from what mini_pairs.py wrote to training pairs, held-out sets and the
text of language models.

Whole pages of the handbook are held out: dev and test are their sentences that have a translation
into each language, OUT/SET.LANGUAGE.tsv. OUT/train.LANGUAGE.tsv has the training pairs (foreign,
English) of the translator that makes the lists, OUT/short.LANGUAGE.tsv the short ones of them that
it sees first, OUT/LANGUAGE-en.train.tsv and .valid.tsv those of them, of
the manuals of BILINGUAL, that come with the corpus. OUT/train.txt and OUT/valid.txt are the text:
the English of these manuals and of ENGLISH_ONLY, which no translator here has seen. What shares a
sentence or a run of words (overlap.RUN) with dev or test is in none of them.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mini_pairs import ENGLISH_ONLY
from overlap import runs

HANDBOOK = "debian-handbook"
HELD_OUT = {
    "dev": "network-config remote-login supervision apt-get config-misc",
    "test": (
        "selinux release-lifecycle foundation-documents package-meta-information http-web-server"
        " ldap-directory virtualization nfs-file-server"
    ),
    "valid": "user-space kernel-compilation backup how-to-migrate",
}
COUNT = {"dev": 300, "test": 500}
BILINGUAL = (HANDBOOK, "gnome-user-docs")
SHORT = 14  # words of a side of a short pair
LONGEST = 30  # words of a side of a pair that comes with the corpus, to keep it small
VALID = 40  # one of so many of these pairs is for validation
# Of ENGLISH_ONLY all of Debian's own manuals, and of the programs' so many sentences, evenly spread
DEBIAN_S = ("securing-debian", "debian-policy", "kernel-handbook")
PROGRAMS = 13_000
LANGUAGES = ("de", "fr")
WORDS = range(6, 46)  # of a sentence of dev or test


def rows(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a tab-separated file."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def pages(name: str) -> set[str]:
    """Return the pages of a held-out set."""
    return {f"sect.{page}.html" for page in HELD_OUT[name].split()}


def held_out(pairs: dict[str, list[list[str]]], name: str) -> list[tuple[str, ...]]:
    """Return English sentence and its translations, of those of a set's pages that have all of
    them, evenly spread.
    """
    translations = [
        {
            english: foreign
            for manual, page, foreign, english in pairs[language]
            if manual == HANDBOOK and page in pages(name)
        }
        for language in LANGUAGES
    ]
    aligned = [
        (english, *(translation[english] for translation in translations))
        for english in translations[0]
        if english in translations[1] and len(english.split()) in WORDS and english[-1] in ".!?"
    ]
    if len(aligned) < COUNT[name]:
        sys.exit(
            f"mini_sets.py: {name} has {len(aligned)} sentences, not {COUNT[name]}; name more pages"
            " in HELD_OUT"
        )
    return [aligned[i * len(aligned) // COUNT[name]] for i in range(COUNT[name])]


def longer_side(row: list[str]) -> int:
    """Return words of the longer side of a pair."""
    return max(len(text.split()) for text in row[2:])


def write(path: Path, lines: Iterable[str]):
    """Write a text file of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(source: Path, out: Path):
    out.mkdir(parents=True, exist_ok=True)
    pairs = {language: list(rows(source / f"{language}.tsv")) for language in LANGUAGES}
    sets = {name: held_out(pairs, name) for name in COUNT}
    for name, sentences in sets.items():
        for column, language in enumerate(LANGUAGES, 1):
            write(
                out / f"{name}.{language}.tsv",
                (f"{sentence[column]}\t{sentence[0]}" for sentence in sentences),
            )
    known = {text for sentences in sets.values() for sentence in sentences for text in sentence}
    seen = {
        run for sentences in sets.values() for sentence in sentences for run in runs(sentence[0])
    }
    hidden = pages("dev") | pages("test")

    def usable(manual: str, page: str, *texts: str) -> bool:
        return (
            not (manual == HANDBOOK and page in hidden)
            and known.isdisjoint(texts)
            and seen.isdisjoint(runs(texts[-1]))
        )

    for language, lines in pairs.items():
        free = [row for row in lines if usable(*row)]
        given = [row for row in free if row[0] in BILINGUAL and longer_side(row) <= LONGEST]
        for name, taken in (
            (f"train.{language}", free),
            (f"short.{language}", [row for row in free if longer_side(row) <= SHORT]),
            (f"{language}-en.train", [row for i, row in enumerate(given, 1) if i % VALID]),
            (f"{language}-en.valid", given[VALID - 1 :: VALID]),
        ):
            write(out / f"{name}.tsv", ("\t".join(row[2:]) for row in taken))
    text: dict[str, list[str]] = {"train": [], "valid": []}
    programs = []
    for manual, page, sentence in filter(lambda row: usable(*row), rows(source / "en.tsv")):
        if manual in BILINGUAL or manual in DEBIAN_S:
            part = "valid" if manual == HANDBOOK and page in pages("valid") else "train"
            text[part].append(sentence)
        elif manual in ENGLISH_ONLY:
            programs.append(sentence)
    text["train"] += [programs[i * len(programs) // PROGRAMS] for i in range(PROGRAMS)]
    for part, lines in text.items():
        write(out / f"{part}.txt", dict.fromkeys(lines))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
