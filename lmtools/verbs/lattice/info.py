"""lmtools lattice info: lattices, states, arcs, density, and what is broken; --repair writes them
without it
"""

from collections import deque
from collections.abc import Iterator

from lmtools.base.log import say_lines
from lmtools.formats import registry
from lmtools.formats.lattices import LATTICES
from lmtools.formats.lists import join_refs
from lmtools.lattice.check import ERROR, IMPOSSIBLE, problems, repair
from lmtools.lattice.density import Statistics, add_statistics, statistics
from lmtools.rescoring import parse_weights
from lmtools.types import Lattice
from lmtools.verbs.lattice.common import choose_weights, read_lattices
from lmtools.verbs.parser import add_references


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices", purpose=", for the density (default: the best path)")
    parser.add("--weights")
    parser.add_argument("--each", action="store_true", help="one line a lattice besides the totals")
    help_text = "write the lattices without what is broken"
    parser.groups["output"].add_argument("--repair", metavar="OUT", help=help_text)
    parser.add("--to", default="slf", help="format of --repair (default: %(default)s)")


def run(args):
    """Print sizes and problems; repair if asked."""
    sizes, broken = [], {}
    looked_at = inspect_lattices(args, sizes, broken)
    if args.repair:
        registry.find_format(args.to, LATTICES).write(looked_at, args.repair)
    else:
        deque(looked_at, maxlen=0)
    print(f"{args.input}: {len(sizes):,} lattices, {describe_sizes(add_statistics(sizes))}")
    for (severity, kind), cases in sorted(broken.items()):
        utt, first = cases[0]
        count = sum(problem.count for _, problem in cases)
        print(
            f"{severity}: {kind}: {count:,} in {len(cases):,} lattices, first {first.example} of"
            f" {utt!r}"
        )


def inspect_lattices(args, sizes: list[Statistics], broken: dict) -> Iterator[Lattice]:
    """Yield the lattices without what is broken; their sizes (as they came, where these can be
    counted) and problems are entered on the way.
    """
    weights = parse_weights(args.weights)
    for lattice, words in join_refs(read_lattices(args), args.ref, args.ref_lines, args.input):
        faults = problems(lattice)
        for problem in faults:
            broken.setdefault((problem.severity, problem.kind), []).append((lattice.utt, problem))
        better, done = repair(lattice)
        countable = (
            better
            if any(problem.severity == ERROR or problem.kind == IMPOSSIBLE for problem in faults)
            else lattice
        )
        sizes.append(
            statistics(
                countable, choose_weights(weights, better), None if words is None else words.split()
            )
        )
        if args.each:
            print(f"{lattice.utt}: {describe_sizes(sizes[-1])}")
        if args.repair:
            say_lines(f"{lattice.utt}: {message}" for message in done)
        yield better


def describe_sizes(size: Statistics) -> str:
    """Return the sizes of one lattice or of many in one line."""
    parts = [
        f"{size.states:,} states",
        f"{size.arcs:,} arcs ({size.word_arcs:,} with words, {len(size.vocabulary):,} different)",
    ]
    if size.arcs_a_word is not None:
        parts.append(f"{size.arcs_a_word:.1f} arcs a word")
    if size.arcs_a_second is not None:
        parts.append(f"{size.seconds:,.1f} s, {size.arcs_a_second:,.1f} arcs a second")
    mean = " a lattice (geometric mean)" if size.lattices > 1 else ""
    return ", ".join([*parts, f"10^{size.paths / size.lattices:.1f} paths{mean}"])
