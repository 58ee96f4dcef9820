#!/usr/bin/env python3
"""mini_pairs.py ROOT OUT: sentence pairs out of the translated documentation in Debian packages
that were unpacked under ROOT.

Pages of one name are aligned block by block: where the markup of both is the same, the blocks of
text in it are translations of each other. Blocks of as many sentences on both sides are split into
sentences. OUT/de.tsv and OUT/fr.tsv have a line a pair: manual, page, foreign sentence, English
sentence; OUT/en.tsv has all English sentences: manual, page, sentence.
"""

import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

LANGUAGES = {"de": ("de", "de-DE"), "fr": ("fr", "fr-FR")}
ENGLISH = ("en", "en-US", "C")
# Manual: the package's directory of pages, where a name of the language stands for {}
MANUALS = {
    "debian-handbook": "usr/share/doc/debian-handbook/html/{}",
    "gnome-user-docs": "usr/share/help/{}",
    "installation-guide": "usr/share/doc/installation-guide-amd64/{}",
    "aptitude-doc": "usr/share/doc/aptitude/html/{}",
    "debian-faq": "usr/share/doc/debian/FAQ/{}",
    "debian-reference": "usr/share/debian-reference",
    "developers-reference": "usr/share/developers-reference/{}",
}
# of these only the English text is read
ENGLISH_ONLY = {
    "securing-debian": "usr/share/doc/harden-doc/html/en-US",
    "debian-policy": "usr/share/doc/debian-policy/policy.html",
    "kernel-handbook": "usr/share/doc/debian-kernel-handbook",
    "apache2-doc": "usr/share/doc/apache2-doc/manual/en",
    "exim4-doc": "usr/share/doc/exim4-doc-html",
    "postfix-doc": "usr/share/doc/postfix/html",
    "bind9-doc": "usr/share/doc/bind9-doc",
    "libvirt-doc": "usr/share/doc/libvirt-doc/html",
}
PAGES = (".html", ".page", ".htm")
SKIPPED = {
    "script",
    "style",
    "pre",
    "screen",
    "nav",
    "header",
    "aside",
    "footer",
    "programlisting",
    "info",
    "head",
    "comment",
}
INLINE = """a abbr acronym app b bdo big br cite cmd code dfn em file font gui guiseq i img
    input kbd key keyseq link mark media object output q s samp small span strike strong sub
    sup sys tt u var wbr"""
VOID = "area base br col embed hr img input link meta source track wbr"
INLINE, VOID = frozenset(INLINE.split()), frozenset(VOID.split())
LETTERS = re.compile(r"[^\W\d_]{2}")
SENTENCE_END = re.compile(
    r"(?<=[.!?…])([\"”’»«“)\]]*)\s+(?=[\"“‘„«»(\[]*[^\W\d_a-zäöüßàâçéèêëîïôûùœ])"
)
ABBREVIATIONS = (
    r"e\.g|i\.e|etc|vs|cf|resp|Mr|Mrs|Dr|St|No|Fig|z\. ?B|d\. ?h|u\."
    r" ?a|usw|bzw|ca|evtl|ggf|Nr|vgl|p\. ?ex|c\.-à-d|M|Mme"
)
ABBREVIATED = re.compile(rf"(\b({ABBREVIATIONS})|\b[A-Z])\.\W*$")
LENGTHS = (3, 60)  # words of a sentence
# of the blocks of a page, in order, at least: else it is another version, and nothing is aligned
ALIKE = 0.9
RATIO = 2.2  # of the characters of both sides, at most
SHARED = 0.6  # of the words that both sides have, at most: more was not translated


class Block(NamedTuple):
    """A stretch of text between two tags of blocks: the tag that it is in, and the text."""

    tag: str
    text: str


class Blocks(HTMLParser):
    """The blocks of a page of HTML or Mallard."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found: list[Block] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.skipping = 0

    def flush(self):
        text = " ".join("".join(self.text).split())
        if text and not self.skipping:
            self.found.append(Block(self.open[-1] if self.open else "", text))
        self.text = []

    def handle_starttag(self, tag, attributes):
        if tag in VOID and tag not in ("link", "input"):
            if tag == "br":
                self.text.append(" ")
            return
        if tag in INLINE:
            return
        self.flush()
        classes = dict(attributes).get("class") or ""
        self.open.append(f"{tag}.{classes}" if tag in ("div", "p") else tag)
        self.skipping += tag in SKIPPED

    def handle_endtag(self, tag):
        if tag in INLINE or tag in VOID:
            return
        self.flush()
        while self.open:
            last = self.open.pop().partition(".")[0]
            self.skipping -= last in SKIPPED
            if last == tag:
                break

    def handle_data(self, data):
        self.text.append(data)


def blocks(path: Path) -> list[Block]:
    """Return the blocks of text of the page in `path`."""
    parser = Blocks()
    parser.feed(path.read_text(encoding="utf-8", errors="replace"))
    parser.close()
    parser.flush()
    return parser.found


def sentences(text: str) -> list[str]:
    """Return the sentences of a block; abbreviations do not end one."""
    parts, start = [], 0
    for match in SENTENCE_END.finditer(text):
        if not ABBREVIATED.search(text[start : match.end(1)]):
            parts.append(text[start : match.end(1)])
            start = match.end()
    return [*parts, text[start:]]


def pages(root: Path, manual: str, names: tuple[str, ...]) -> dict[str, Path]:
    """Return the pages of `manual` in a language, by their names without the language's."""
    texts = {}
    for name in names:
        for folder in root.glob(f"*/{MANUALS[manual].format(name)}"):
            for path in sorted(folder.rglob("*")):
                key = str(path.relative_to(folder)).replace(f".{name}.html", ".html")
                # else all languages share the folder
                template = path.suffix in PAGES and path.is_file() and "{}" in MANUALS[manual]
                if template or path.name.endswith(f".{name}.html"):
                    texts.setdefault(key, path)
    # English pages lie above those of the other languages
    if manual in ("developers-reference", "debian-faq") and names is ENGLISH:
        for folder in root.glob(f"*/{MANUALS[manual].removesuffix('/{}')}"):
            texts |= {
                path.name.replace(".en.html", ".html"): path for path in folder.glob("*.html")
            }
    return texts


def english_pages(root: Path, manual: str) -> dict[str, Path]:
    """Return the English pages of any manual."""
    if manual in MANUALS:
        return pages(root, manual, ENGLISH)
    folders = root.glob(f"*/{ENGLISH_ONLY[manual]}")
    return {
        str(path.relative_to(folder)): path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in PAGES and path.is_file()
    }


def aligned(foreign: list[Block], english: list[Block]) -> Iterator[tuple[str, str]]:
    """Yield pairs of blocks that the same markup holds on both sides; none where the pages differ
    too much.
    """
    matcher = difflib.SequenceMatcher(
        None, [block.tag for block in foreign], [block.tag for block in english], autojunk=False
    )
    if matcher.ratio() < ALIKE:
        return
    for first, second, size in matcher.get_matching_blocks():
        for i in range(size):
            yield foreign[first + i].text, english[second + i].text


def pairs(foreign: str, english: str) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of two blocks that translate each other; none where they have
    different numbers of sentences and are long.
    """
    first, second = sentences(foreign), sentences(english)
    if len(first) != len(second):
        first, second = [foreign], [english]
    yield from filter(lambda pair: translated(*pair), zip(first, second, strict=True))


def translated(foreign: str, english: str) -> bool:
    """Return whether a pair looks like a sentence and its translation: words of both, and neither
    much longer than the other.
    """
    lengths = [len(side.split()) for side in (foreign, english)]
    ratio = len(foreign) / max(1, len(english))
    words = [set(re.findall(r"[^\W\d_]{3,}", side)) for side in (foreign, english)]
    return (
        LENGTHS[0] <= min(lengths)
        and max(lengths) <= LENGTHS[1]
        and 1 / RATIO <= ratio <= RATIO
        and all(len(LETTERS.findall(side)) >= LENGTHS[0] for side in (foreign, english))
        and len(words[0] & words[1]) <= SHARED * max(1, min(map(len, words)))
    )


def write(path: Path, rows: Iterable[tuple[str, ...]]):
    """Write the rows that no row before had the sentences of, tab-separated; how many of each
    manual goes to standard error.
    """
    counts, seen = Counter(), set()
    with open(path, "w", encoding="utf-8") as stream:
        for manual, page, *texts in rows:
            if tuple(texts) not in seen:
                seen.add(tuple(texts))
                counts[manual] += 1
                print(manual, page, *texts, sep="\t", file=stream)
    print(
        f"{path}: {', '.join(f'{manual} {count:,}' for manual, count in counts.items())}",
        file=sys.stderr,
    )


def all_pairs(root: Path, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield manual, page and both sentences of each pair of a language."""
    for manual in MANUALS:
        here, there = pages(root, manual, ENGLISH), pages(root, manual, names)
        for page in sorted(here.keys() & there.keys()):
            for both in aligned(blocks(there[page]), blocks(here[page])):
                for pair in pairs(*both):
                    yield manual, page, *pair


def all_english(root: Path) -> Iterator[tuple[str, ...]]:
    """Yield manual, page and sentence of all English text that looks like sentences."""
    for manual in (*MANUALS, *ENGLISH_ONLY):
        for page, path in sorted(english_pages(root, manual).items()):
            for block in blocks(path):
                for sentence in sentences(block.text):
                    if (
                        LENGTHS[0] <= len(sentence.split()) <= LENGTHS[1]
                        and len(LETTERS.findall(sentence)) >= LENGTHS[0]
                    ):
                        yield manual, page, sentence


def main(root: Path, out: Path):
    """Write all pairs by language, and all English sentences."""
    out.mkdir(parents=True, exist_ok=True)
    for language, names in LANGUAGES.items():
        write(out / f"{language}.tsv", all_pairs(root, names))
    write(out / "en.tsv", all_english(root))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
