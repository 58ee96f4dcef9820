"""Lines of a large text that are like a domain's: those of the lowest cross-entropy difference
(Moore and Lewis 2010, Intelligent Selection of Language Model Training Data).
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.ngram import build
from lmtools.ngram.sentences import UNKNOWN
from lmtools.score.load import load
from lmtools.score.texts import score_texts
from lmtools.text import Normaliser
from lmtools.text.blocks import read_text
from lmtools.text.scripts import split_units

BLOCK = 20_000  # lines that are scored at a time
COMMON = 2  # occurrences of a word of the domain's vocabulary

Measure = Callable[[list[str]], np.ndarray]


@dataclass
class Selection:
    """The best lines in the order of the text, the difference of each (nats a word), how many lines
    were read, and how many of them were equal to one that was among the best then.
    """

    lines: list[str]
    differences: list[float]
    read: int = 0
    repeated: int = 0


def select_lines(lines: Iterable[str], measure: Measure, keep: int) -> Selection:
    """Select the `keep` lines of the lowest differences by `measure`, each once, the earlier of
    equals; not empty ones and inf. Holds `keep` lines and a block, which tells all copies.
    """
    best: list[tuple[float, int, str]] = []  # the worst first
    held, selection = set(), Selection([], [])
    rest = iter(lines)
    while block := list(islice(rest, BLOCK)):
        texts = [text for line in block if (text := line.strip())]
        for text, difference in zip(texts, measure(texts) if texts else (), strict=True):
            selection.read += 1
            if difference == np.inf:
                continue
            if text in held:
                selection.repeated += 1
                continue
            entry = (-float(difference), -selection.read, text)
            if len(best) < keep:
                heapq.heappush(best, entry)
            elif entry > best[0]:
                held.remove(heapq.heapreplace(best, entry)[2])
            else:
                continue
            held.add(text)
    for difference, _, text in sorted(best, key=lambda entry: -entry[1]):
        selection.lines.append(text)
        selection.differences.append(-difference)
    return selection


def measure_difference(domain: LMSpec, general: LMSpec, computing: Computing) -> Measure:
    """Return a function from lines to their cross entropy under the LM of a domain less that under
    a general one, nats a word (N,); inf without tokens.
    """
    scorers = [load(spec, computing) for spec in (domain, general)]
    if len(kinds := {scorer.kind for scorer in scorers}) > 1:
        raise UserError(
            f"{general.lm}: {' and '.join(sorted(kinds))} do not compare; name two LMs of a kind"
        )

    def measure(texts: list[str]) -> np.ndarray:
        inside, outside = (score_texts(texts, scorer, computing) for scorer in scorers)
        words = np.array([len(split_units(text)) + 1 for text in texts])
        difference = (outside.log_prob - inside.log_prob) / words
        # of what a normaliser empties only the end is predicted, which says nothing of a domain
        return np.where((inside.tokens > 1) & (outside.tokens > 1), difference, np.inf)

    return measure


@dataclass(frozen=True)
class Estimation:
    """How a domain's LM and the general one are made: order, normaliser, seed."""

    order: int
    normaliser: Normaliser
    seed: int

    def measure(
        self, domain: Sequence[str], pool: Sequence[str], out: Path, computing: Computing
    ) -> Measure:
        """Return `measure_difference` by n-grams, in directories in `out`, of the domain's text and
        as many random lines of the pool, over words that the domain has twice and UNKNOWN, as in
        the paper; one that the general text lacks has <unk>'s small probability.
        """
        common = find_common(domain, self.normaliser)

        def rewrite(line: str) -> str:
            words = self.normaliser(line).split()
            return " ".join(word if word in common else UNKNOWN for word in words)

        places = []
        drawn = draw_lines(read_lines(pool), sum(1 for _ in read_lines(domain)), self.seed)
        for name, lines in (("domain", read_lines(domain)), ("general", drawn)):
            with atomic_text(out / f"{name}.txt") as text:
                text.writelines(f"{rewrite(line)}\n" for line in lines)
            build([out / f"{name}.txt"], self.order, out / name, Normaliser(), kenlm="none")
            places.append(LMSpec(str(out / name)))
        by_words = measure_difference(*places, computing)
        return lambda texts: by_words(list(map(rewrite, texts)))


def find_common(domain: Sequence[str], normalise: Normaliser) -> set[str]:
    """Return the words that the domain's text has COMMON times or more."""
    lines = read_lines(domain)
    counts = Counter(word for line in lines for word in normalise(line).split())
    return {word for word, count in counts.items() if count >= COMMON}


def read_lines(paths: Iterable) -> Iterator[str]:
    return (line for path in paths for _, line in read_text(path) if line.strip())


def draw_lines(lines: Iterable[str], count: int, seed: int) -> list[str]:
    """Return so many lines at random, or all there are, in one pass (reservoir sampling)."""
    draw, rest = random.Random(seed), iter(lines)
    drawn = list(islice(rest, count))
    for place, line in enumerate(rest, len(drawn)):
        if (at := draw.randrange(place + 1)) < count:
            drawn[at] = line
    return drawn
