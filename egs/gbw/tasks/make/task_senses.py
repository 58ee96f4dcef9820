"""Words with senses: the examples of WordNet 3.0's glosses; make_tasks.py writes them.

What is embedded (tasks/mini) are examples of words with several senses, `key TAB place TAB words`
(the word's place, from 0), and the lines of index.sense of these words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from lmtools.base.files import read_lines

PARTS = {"noun": ("1", "NN"), "verb": ("2", "VB"), "adj": ("3", "JJ"), "adv": ("4", "RB")}
TAGS = {**dict(PARTS.values()), "5": "JJ"}
SHORTEST, LONGEST = 4, 30  # words of an example
EXAMPLES, SENSES = 2, 2  # that a sense and a word have at least


class Example(NamedTuple):
    """A sense's key, the place of its word in a sentence, and the sentence's words."""

    key: str
    place: int
    words: list[str]


def read_examples(path) -> list[Example]:
    """Return the embedded examples."""
    rows = (line.split("\t") for _, line in read_lines(path))
    return [Example(key, int(place), words.split()) for key, place, words in rows]


def from_wordnet(wordnet: Path, known: set[str]) -> tuple[list[Example], list[str]]:
    """Return the examples, and lines of index.sense, of the words of `known` that have enough of
    them.
    """
    index = [line for _, line in read_lines(wordnet / "index.sense")]
    keys = {}  # (lemma, part of speech, offset) -> key
    for line in index:
        key, offset, _, _ = line.split()
        keys[(*word_of(key), offset)] = key
    examples: dict[tuple[str, str], list[Example]] = defaultdict(list)
    seen = set()
    for name, (part, _) in PARTS.items():
        for lemma, offset, sentence in glosses(wordnet, name):
            if lemma.upper() in known:
                words = re.findall(r"[A-Z]+(?:'[A-Z]+)?", sentence.upper().replace("-", " "))
                places = [
                    n for n, word in enumerate(words) if word in inflected(wordnet, name, lemma)
                ]
                text = " ".join(words)
                # one word alone may be it; a sentence stands for one word only
                if len(places) == 1 and SHORTEST <= len(words) <= LONGEST and text not in seen:
                    seen.add(text)
                    examples[lemma, part].append(
                        Example(keys[lemma, part, offset], places[0], words)
                    )
    kept = []
    for group in examples.values():
        count = Counter(example.key for example in group)
        enough = {key for key, number in count.items() if number >= EXAMPLES}
        if len(enough) >= SENSES:
            kept += [example for example in group if example.key in enough]
    words = {word_of(example.key) for example in kept}
    return sorted(kept), [line for line in index if word_of(line.split()[0]) in words]


def word_of(key: str) -> tuple[str, str]:
    """Return the lemma and the part of speech of a key; 5 is an adjective as 3 is."""
    lemma, _, rest = key.partition("%")
    return lemma, rest[0].replace("5", "3")


def glosses(wordnet: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield lemmas of one word, their synset's offset and each example in its gloss."""
    for _, line in read_lines(wordnet / f"data.{name}"):
        if line.startswith("  "):
            continue  # the licence
        fields, _, gloss = line.partition(" | ")
        offset, _, _, count, *rest = fields.split()
        for word in rest[: 2 * int(count, 16) : 2]:
            lemma = word.partition("(")[0].lower()  # of an adjective: galore(ip)
            if lemma.isalpha():
                for sentence in re.findall(r'"([^"]+)"', gloss):
                    yield lemma, offset, sentence


EXCEPTIONS: dict[tuple[Path, str], dict[str, list[str]]] = {}


def inflected(wordnet: Path, name: str, lemma: str) -> set[str]:
    """Return the forms of a lemma, upper case: WordNet's irregular ones and the regular ones."""
    if (wordnet, name) not in EXCEPTIONS:
        forms = EXCEPTIONS[wordnet, name] = defaultdict(list)
        for _, line in read_lines(wordnet / f"{name}.exc"):
            form, *lemmas = line.split()
            for stem in lemmas:
                forms[stem].append(form)
    stem = lemma.removesuffix("e")
    stems = [stem, lemma + lemma[-1]]
    y = lemma[:-1] + "i" if lemma[-1] == "y" else stem
    regular = {
        "noun": [lemma + "s", lemma + "es", y + "es"],
        "verb": [lemma + "s", lemma + "es", y + "es", y + "ed", lemma + "ing"]
        + [stem + ending for stem in stems for ending in ("ed", "ing")],
        "adj": [stem + ending for stem in (*stems, y) for ending in ("er", "est")],
        "adv": [],
    }[name]
    return {form.upper() for form in (lemma, *regular, *EXCEPTIONS[wordnet, name][lemma])}


def split(examples: list[Example], random: Random) -> dict[str, list[Example]]:
    """Return sets in which every sense of dev and test is also in train."""
    senses = defaultdict(list)
    for example in examples:
        senses[example.key].append(example)
    sets: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for number, group in enumerate(senses.values()):
        random.shuffle(group)
        sets["dev" if number % 3 == 0 else "test"].append(group.pop())
        if len(group) > EXAMPLES:
            sets["test" if number % 3 == 0 else "dev"].append(group.pop())
        sets["train"] += group
    for group in sets.values():
        random.shuffle(group)
    return sets


def semcor(examples: list[Example], name: str) -> Iterator[str]:
    """Yield the lines of a set in SemCor's form."""
    for number, (key, place, words) in enumerate(examples, 1):
        yield f"# mini wordnet-{name} {number}"
        for n, word in enumerate(words):
            lemma, tag = (
                (word_of(key)[0], TAGS[key.partition("%")[2][0]]) if n == place else ("_", "X")
            )
            yield f"{word}\t{lemma}\t{tag}\t{key if n == place else '_'}"
        yield ""
