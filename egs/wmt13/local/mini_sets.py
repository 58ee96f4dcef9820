#!/usr/bin/env python3
"""mini_sets.py PAIRS OUT: from what mini_pairs.py wrote to training pairs, held-out sets and the
text of language models.

Whole pages of the handbook are held out: dev and test are their sentences that have a translation
into each language. OUT/LANGUAGE.tsv has the training pairs (foreign, English), OUT/SET.LANGUAGE.tsv
the pairs of a set, OUT/train.txt and OUT/valid.txt the text. What shares a sentence or a run of
words (overlap.RUN) with dev or test is in neither; the text has the manuals of TEXT only.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

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
# under licences that let their text be passed on
TEXT = (HANDBOOK, "gnome-user-docs", "libreoffice-help")
LANGUAGES = ("de", "fr")
WORDS = range(6, 46)  # of a sentence of dev or test


def rows(path: Path) -> Iterator[list[str]]:
    """The lines of a tab-separated file."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def pages(name: str) -> set[str]:
    """The pages of a held-out set."""
    return {f"sect.{page}.html" for page in HELD_OUT[name].split()}


def held_out(pairs: dict[str, list[list[str]]], name: str) -> list[tuple[str, ...]]:
    """English sentence and its translations, of those of a set's pages that have all of them,
    evenly spread.
    """
    translations = [
        {
            english: foreign
            for manual, page, foreign, english in pairs[language]
            if manual == HANDBOOK and page in pages(name)
        }
        for language in LANGUAGES
    ]
    found = [
        (english, *(one[english] for one in translations))
        for english in translations[0]
        if english in translations[1] and len(english.split()) in WORDS and english[-1] in ".!?"
    ]
    if len(found) < COUNT[name]:
        sys.exit(
            f"mini_sets.py: {name} has {len(found)} sentences, not {COUNT[name]}; name more pages"
            " in HELD_OUT"
        )
    return [found[i * len(found) // COUNT[name]] for i in range(COUNT[name])]


def write(path: Path, lines: Iterable[str]):
    """A text file of these lines."""
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
    for language, lines in pairs.items():
        train = [
            f"{foreign}\t{english}"
            for manual, page, foreign, english in lines
            if not (manual == HANDBOOK and page in hidden)
            and known.isdisjoint((foreign, english))
            and seen.isdisjoint(runs(english))
        ]
        write(out / f"{language}.tsv", train)
    text: dict[str, list[str]] = {"train": [], "valid": []}
    for manual, page, sentence in rows(source / "en.tsv"):
        if (
            manual in TEXT
            and not (manual == HANDBOOK and page in hidden)
            and sentence not in known
            and seen.isdisjoint(runs(sentence))
        ):
            text["valid" if manual == HANDBOOK and page in pages("valid") else "train"].append(
                sentence
            )
    for part, lines in text.items():
        write(out / f"{part}.txt", dict.fromkeys(lines))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
