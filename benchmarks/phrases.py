"""Time and memory of glossaries of 10 to 10,000 phrases on texts, lattices and lists.

    python benchmarks/phrases.py TEXT LATTICES LISTS

Phrases are one to three words of the rarer half of the words of TEXT. LATTICES is a directory of
SLF files, LISTS a file of N-best lists. Processor seconds, the least of REPEATS, the sizes in turn;
memory by tracemalloc.
"""

import random
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from lmtools.base.files import read_lines
from lmtools.formats import read
from lmtools.formats.lattices import read as read_lattices
from lmtools.lattice.expand import expand
from lmtools.phrases.glossary import Glossary, make_glossary
from lmtools.phrases.matching import PhrasePrefixes, split_text
from lmtools.phrases.substitute import substitute_lists
from lmtools.types import PHRASES, Lattice, NBest

SIZES = (10, 100, 1_000, 10_000)
LINES, LATTICES, REPEATS, SEED = 20_000, 20, 3, 1
WEIGHTS = {"am": 1.0, PHRASES: 1.0}


def draw_phrases(ranked: Sequence[str], number: int) -> list[str]:
    """Phrases of the rarer half of words."""
    rng, pool = random.Random(SEED), ranked[len(ranked) // 2 :]
    return [" ".join(rng.choices(pool, k=rng.randint(1, 3))) for _ in range(number)]


def measure(work: Callable[[], object]) -> float:
    """Processor seconds."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def measure_memory(phrases: Sequence[str]) -> float:
    """Megabytes that a glossary and its automaton keep."""
    tracemalloc.start()
    kept = make_glossary(phrases).of("u")
    memory = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    del kept
    return memory


def compose(lattices: Sequence[Lattice], glossary: Glossary) -> None:
    """Give each path of lattices its phrases."""
    for lattice in lattices:
        expand(lattice, {PHRASES: PhrasePrefixes(glossary.of("u"))}, WEIGHTS)


def main(path: str, slf: str, nbest: str) -> None:
    """Print the table."""
    texts = [line for _, line in islice(read_lines(path), LINES)]
    words = [split_text(text) for text in texts]
    ranked = [word for word, _ in Counter(word for text in words for word in text).most_common()]
    drawn = {size: draw_phrases(ranked, size) for size in SIZES}
    lattices = list(islice(read_lattices(slf, "slf"), LATTICES))
    arcs = sum(len(lattice.words) for lattice in lattices)
    lists: list[NBest] = list(islice(read(nbest), LATTICES))
    rows = {size: [float("inf")] * 4 for size in SIZES}
    for _ in range(REPEATS):
        for size, row in rows.items():
            glossary = make_glossary(drawn[size])
            value = glossary.of("u").value
            fresh = make_glossary(drawn[size])
            works = (
                lambda g=fresh: g.of("u"),
                lambda v=value: [v(text) for text in words],
                lambda g=glossary: compose(lattices, g),
                lambda g=glossary: [*substitute_lists(lists, g, {}, 10)],
            )
            row[:] = [min(*pair) for pair in zip(row, map(measure, works), strict=True)]
    print(
        "| phrases | build, ms | memory, MB | find, us a word | us an arc | near words, ms a list |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for size, (build, find, arc, near) in rows.items():
        memory = measure_memory(drawn[size])
        cells = 1e3 * build, memory, 1e6 * find / sum(map(len, words)), 1e6 * arc / arcs
        figures = " | ".join(f"{cell:.3g}" for cell in (*cells, 1e3 * near / len(lists)))
        print(f"| {size:,} | {figures} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
