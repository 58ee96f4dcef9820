"""Glossaries of utterances with references: the rare words of each reference, among distractors
drawn from the other rare words of a text.

    phrases_glossary.py TEXT COMMON "0 100 1000" OUT REFERENCES..

Rare words are those beyond the COMMON most frequent of TEXT. REFERENCES are SET=F, lists (F.jsonl)
or Kaldi text; OUT/N/SET.jsonl is the glossary with N distractors.
"""

import json
import random
import sys
from collections import Counter
from pathlib import Path

from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats import kaldi_text, read
from lmtools.phrases.matching import split_text

LEAST = 3  # times that a distractor comes in the text
SEED = 1


def draw(rng: random.Random, pool: list[str], number: int, said: set[str]) -> list[str]:
    """Distractors that nobody said in the utterance."""
    drawn = (
        word for word in rng.sample(pool, min(number + len(said), len(pool))) if word not in said
    )
    return [word for word, _ in zip(drawn, range(number), strict=False)]


def read_references(path: str) -> dict[str, str]:
    """The reference of each utterance, in lists or in Kaldi text."""
    if path.endswith(".jsonl"):
        return {nbest.utt: nbest.ref for nbest in read(path)}
    return kaldi_text.read(path)


def main(text: str, common: str, numbers: str, out: str, *references: str) -> None:
    """Write the glossaries."""
    counts: Counter = Counter()
    for _, line in read_lines(text):
        counts.update(line.split())
    ranked = [w for w, count in counts.most_common() if count >= LEAST and split_text(w)]
    usual, pool = set(ranked[: int(common)]), ranked[int(common) :]
    for number in map(int, numbers.split()):
        for name, _, path in (pair.partition("=") for pair in references):
            file = Path(out, str(number), f"{name}.jsonl")
            file.parent.mkdir(parents=True, exist_ok=True)
            rng = random.Random(SEED)
            with file.open("w") as rows:
                for utt, ref in read_references(path).items():
                    said = ref.split()
                    rare = [w for w in dict.fromkeys(said) if w not in usual and split_text(w)]
                    phrases = rare + draw(rng, pool, number, set(said))
                    row = {"id": utt, "phrases": phrases}
                    rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
