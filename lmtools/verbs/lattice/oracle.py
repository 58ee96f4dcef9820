"""lmtools lattice oracle: the least word error rate that any path of the lattices has, beside that
of the best path
"""

from lmtools.evaluate import evaluate, show
from lmtools.formats import kaldi_text
from lmtools.formats.lists import join_refs
from lmtools.lattice.oracle import oracle
from lmtools.lattice.paths import best
from lmtools.rescoring import parse_weights
from lmtools.verbs.lattice.common import choose_weights, mend_lattice, read_lattices
from lmtools.verbs.parser import add_references


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices", required=True)
    parser.add("--weights")
    parser.add("--seed", help="of the bootstrap's draws (default: %(default)s)")
    help_text = "Kaldi text of the paths with the fewest errors"
    parser.add("--out", required=False, help=help_text)


def run(args):
    """Print error rates; write the oracle's texts if asked."""
    weights = parse_weights(args.weights)
    refs, first, least = {}, {}, {}
    for lattice, ref in join_refs(
        map(mend_lattice, read_lattices(args)), args.ref, args.ref_lines, args.input
    ):
        refs[lattice.utt] = ref
        first[lattice.utt] = " ".join(best(lattice, choose_weights(weights, lattice)).words)
        least[lattice.utt] = " ".join(oracle(lattice, refs[lattice.utt].split()).words)
    for name, texts in (("best path", first), ("oracle", least)):
        evaluation = evaluate(refs, texts, "wer")
        interval = evaluation.interval(args.seed)
        print(f"{name}: {show.line(evaluation, interval)}")
    if args.out:
        kaldi_text.write(least, args.out)
