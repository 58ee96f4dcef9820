"""lmtools lattice oracle: the least word error rate that any path of the lattices has, beside that
of the best path
"""

from lmtools.evaluate import confidence, evaluate, show
from lmtools.formats import kaldi_text
from lmtools.lattice.oracle import oracle
from lmtools.lattice.paths import best
from lmtools.verbs.lattice.common import HEADERS, add_weights, known, lattices_of, sound, weights_of
from lmtools.verbs.numbers import seed
from lmtools.verbs.references import add_references, joined


def arguments(parser):
    """Declare the action's options."""
    add_weights(parser, HEADERS)
    add_references(parser, "lattices", required=True)
    parser.add_argument("--out", metavar="F", help="Kaldi text of the paths with the fewest errors")
    parser.add_argument(
        "--seed",
        type=seed,
        default=1,
        metavar="N",
        help="of the bootstrap's draws (default: %(default)s)",
    )


def run(args):
    """Print error rates; write the oracle's texts if asked."""
    weights = weights_of(args)
    refs, first, least = {}, {}, {}
    for lattice, ref in joined(args, map(sound, lattices_of(args))):
        refs[lattice.utt] = ref
        first[lattice.utt] = " ".join(best(lattice, known(weights, lattice)).words)
        least[lattice.utt] = " ".join(oracle(lattice, refs[lattice.utt].split()).words)
    for name, texts in (("best path", first), ("oracle", least)):
        evaluation = evaluate(refs, texts, "wer")
        interval = confidence(evaluation.statistics, "wer", args.seed)
        print(f"{name}: {show.line(evaluation, interval)}")
    if args.out:
        kaldi_text.write(least, args.out)
