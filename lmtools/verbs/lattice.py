"""lmtools lattice: what lattices hold, their best paths, oracles and posteriors, and rescoring with
language models.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say, say_lines
from lmtools.base.options import fill
from lmtools.base.seal import write_json
from lmtools.base.specs import LMSpec
from lmtools.evaluate import show
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.doctor.writing import doubt_writing
from lmtools.formats import FORMATS, kaldi_text, registry
from lmtools.formats.lattices import LATTICES, default_weights, detect, stream
from lmtools.formats.lists import join_refs
from lmtools.lattice.check import ERROR, IMPOSSIBLE, drop_unusable, problems, repair
from lmtools.lattice.density import Statistics, add_statistics, oracle, statistics
from lmtools.lattice.forward import add_posteriors
from lmtools.lattice.paths import as_nbest, best
from lmtools.rescoring.lists import warn_unseen
from lmtools.rescoring.weights import mark, parse_weights
from lmtools.score.lattices import (
    LatticeOptions,
    LatticeOutputs,
    LatticeResult,
    LatticeTotals,
    run_lattices,
)
from lmtools.types import Lattice
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import amount, from_zero, positive
from lmtools.verbs.options import SEVERAL_LMS, WEIGHTS
from lmtools.verbs.parser import (
    add_actions,
    add_lm,
    add_phrases,
    add_references,
    add_settings,
    parse_phrases,
    read_settings,
)

SETTINGS = ("prune_beam", "cover_beam", "tokens", "states")  # of --set

EXAMPLES = (
    "lmtools lattice nbest lattices.slf --depth 50 --out nbest.jsonl",
    "lmtools lattice rescore lattices.slf --lm ngram=lm --weights am=1,ngram=5 --text-out best.txt",
)


def choose_weights(weights: Mapping[str, float] | None, lattice: Lattice) -> Mapping[str, float]:
    """Return `weights`, or the lattice's own."""
    return default_weights(lattice) if weights is None else weights


def read_lattices(args) -> Iterator[Lattice]:
    """Yield the lattices of the input one by one; UserError if there are none."""
    read = False
    for lattice in stream(args.input, args.format):
        read = True
        yield lattice
    if not read:
        raise UserError(f"{args.input}: no lattices; give the recogniser's")


def mend_lattice(lattice: Lattice) -> Lattice:
    """Return the lattice, repaired where algorithms need it; what was done is said."""
    lattice, messages = drop_unusable(lattice)
    say_lines(messages)
    return lattice


def declare_info(parser):
    """Count lattices, states, arcs, density, what is broken; --repair writes them without it."""
    add_references(parser, "lattices", purpose=", for the density (default: the best path)")
    parser.add("--weights")
    parser.add_argument("--each", action="store_true", help="also print a line for each lattice")
    help_text = "write the lattices without what is broken in them"
    parser.groups["output"].add_argument("--repair", metavar="OUT", help=help_text)
    parser.add("--to", default="slf", help="format of --repair (default: %(default)s)")


def run_info(args):
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
    """Yield the lattices that are not broken, noting sizes and problems of all."""
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


def declare_nbest(parser):
    """Write the best distinct word sequences of each lattice, in order, with their scores."""
    add_references(parser, "lattices")
    parser.add("--weights")
    parser.add(
        "--depth", default=100, help="number of hypotheses for each lattice (default: %(default)s)"
    )
    parser.add("--out", help="N-best lists to write; - prints them")
    parser.add("--to")


def run_nbest(args):
    weights = parse_weights(args.weights)
    lattices = join_refs(
        map(mend_lattice, read_lattices(args)), args.ref, args.ref_lines, args.input
    )
    total = args.to.partition(":")[0] != "jsonl"
    pairs: list[tuple[str, str]] = []  # first hypotheses and references

    def lists():
        for lattice, ref in lattices:
            nbest = as_nbest(
                lattice, choose_weights(weights, lattice), args.depth, ref, total=total
            )
            if nbest.hyps and nbest.ref is not None:
                pairs.append((nbest.hyps[0].text, nbest.ref))
            yield nbest

    registry.find_format(args.to, FORMATS).write(lists(), args.out)
    say_lines(doubt_writing(pairs, args.out))


def declare_oracle(parser):
    """Measure the least word error rate of any path of the lattices, beside the best path's."""
    add_references(parser, "lattices", required=True)
    parser.add("--weights")
    parser.add("--seed", help="seed of the bootstrap (default: %(default)s)")
    help_text = "write the paths with the fewest errors as Kaldi text"
    parser.add("--out", required=False, help=help_text)


def run_oracle(args):
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


def declare_posteriors(parser):
    """Write the probability of each arc (SLF: field `p` beside its scores, else the one score of
    other formats).
    """
    parser.add("--weights")
    parser.add("--scale", default=1.0)
    parser.add("--out", help="lattices to write; - prints them")
    parser.add("--to", default="slf")


def run_posteriors(args):
    weights = parse_weights(args.weights)
    beside = args.to.partition(":")[0] == "slf"
    lattices = map(mend_lattice, read_lattices(args))
    marked = (
        add_posteriors(lattice, choose_weights(weights, lattice), args.scale, beside)
        for lattice in lattices
    )
    registry.find_format(args.to, LATTICES).write(marked, args.out)


def declare_rescore(parser):
    """Write new scores of every arc by language models (exact for n-grams); lattices, N-best lists
    and texts of them.
    """
    add_references(parser, "lattices", purpose=" of the lists")
    help_text = "a language model, under the name that --weights has for it"
    add_lm(parser, **SEVERAL_LMS, help=help_text)
    group = parser.groups["language model"]
    help_text = "subtract this LM's score from `graph`, which contains it, and name it `lm`"
    group.add_argument("--old-lm", metavar="DIR", help=Rare(help_text))
    add_phrases(parser)
    parser.add("--weights", help=f"{WEIGHTS} (required)")
    help_text = (
        "for neural LMs: merge histories that end in the same N-1 words; 0: none (default:"
        " %(default)s)"
    )
    parser.add("--max-ngram-order", type=from_zero, default=4, help=help_text)
    help_text = "drop histories whose score is more than B below the best of their state"
    parser.add_argument("--beam", type=amount, default=math.inf, metavar="B", help=help_text)
    add_settings(parser, LatticeOptions, SETTINGS)
    parser.add(
        "--out",
        required=False,
        help="rescored lattices to write; - or a Kaldi wspecifier for a pipe",
    )
    parser.add("--to", default=None, help="format of the output (default: that of the input)")
    parser.add("--nbest-out", help="write N-best lists of the rescored lattices")
    parser.add("--nbest-to")
    parser.add(
        "--depth", default=100, help="number of hypotheses in each list (default: %(default)s)"
    )
    parser.add("--text-out")
    group = parser.groups["output"]
    group.add_argument(
        "--report", metavar="F.json", help=Rare("write sizes, time and models as JSON")
    )
    help_text = (
        "for LMs that read both sides: also report how far the scores of arcs are from those of"
        " whole sentences, on the N best paths"
    )
    group.add_argument("--exact", type=positive, metavar="N", help=Rare(help_text))
    parser.add("--device", "--precision", "--engine", "--nj")


def run_rescore(args):
    """Rescore one by one; one output gets each result at once, the others at the end."""
    places = [path for path in (args.out, args.nbest_out, args.text_out) if path]
    if not places:
        raise UserError("nothing to write; give --out, --nbest-out or --text-out")
    if sum(path == "-" or path.endswith(":-") for path in places) > 1:
        raise UserError("two results on standard output; give all but one the name of a file")
    args.format = args.format or detect(args.input)
    args.to = args.to or args.format
    options, totals = options_of(args), LatticeTotals()
    write_results(args, run_all(args, options, totals))
    if args.report:
        write_json(totals.facts() | describe_options(args, options), args.report, allow_nan=False)
    places = {name: spec.lm for name, spec in options.lms.items()}
    say_lines(
        warn_unseen(totals.signatures, {**dict.fromkeys(totals.signatures, args.input), **places})
    )
    say(totals.describe())


def run_all(args, options: LatticeOptions, totals: LatticeTotals) -> Iterator[LatticeResult]:
    """Yield each result with its reference, entered into the totals, its messages said."""
    marked = args.nbest_to.partition(":")[0] == "jsonl"
    wanted = LatticeOutputs(
        lattice=bool(args.out),
        n=args.depth if args.nbest_out else None,
        total=not marked,  # formats with room for one score lose which is whose
        text=bool(args.text_out),
        merge=registry.find_format(args.to, LATTICES).merge if args.out else None,
        exact=args.exact,
    )
    results = run_lattices(read_lattices(args), options, wanted, args.nj)
    for result, ref in join_refs(results, args.ref, args.ref_lines, args.input):
        say_lines(result.messages)
        totals.add(result)
        nbest = result.nbest and replace(result.nbest, ref=ref)
        yield replace(result, nbest=mark(nbest, result.signatures) if marked and nbest else nbest)


def options_of(args) -> LatticeOptions:
    lms = {name: LMSpec.parse(lm) for name, lm in parse_pairs(args.lm, "--lm", "NAME=DIR").items()}
    if not args.weights:
        raise UserError(
            "no weights of the scores; give --weights, as in --weights am=1,lm=5,ngram=10,words=-1"
        )
    return LatticeOptions(
        lms,
        parse_weights(args.weights),
        old=LMSpec.parse(args.old_lm) if args.old_lm else None,
        order=args.max_ngram_order or None,
        computing=fill(Computing, args),
        glossary=parse_phrases(args.phrases),
        beam=args.beam,
        **read_settings(args, LatticeOptions),
    )


def write_results(args, results: Iterator[LatticeResult]) -> None:
    writers = []
    if args.out:
        write = registry.find_format(args.to, LATTICES).write
        writers.append(lambda items: write((item.lattice for item in items), args.out))
    if args.nbest_out:
        write_lists = registry.find_format(args.nbest_to, FORMATS).write
        writers.append(lambda items: write_lists((item.nbest for item in items), args.nbest_out))
    if args.text_out:
        writers.append(
            lambda items: kaldi_text.write_rows(
                ((item.utt, item.text) for item in items), args.text_out
            )
        )
    kept: list[LatticeResult] = []

    def remembered() -> Iterator[LatticeResult]:
        for result in results:
            yield result
            if len(writers) > 1:
                kept.append(replace(result, lattice=None))

    writers[0](remembered())
    for writer in writers[1:]:
        writer(kept)


def describe_options(args, options: LatticeOptions) -> dict:
    names = ("tokens", "prune_beam")
    return {name: getattr(options, name) for name in names} | {
        "nj": args.nj,
        "precision": args.precision,
        "lms": {name: str(spec) for name, spec in options.lms.items()},
        "weights": dict(options.weights),
        "order": args.max_ngram_order,
        "beam": args.beam if args.beam < math.inf else None,
    }


ACTIONS = {
    "info": (declare_info, run_info),
    "nbest": (declare_nbest, run_nbest),
    "oracle": (declare_oracle, run_oracle),
    "posteriors": (declare_posteriors, run_posteriors),
    "rescore": (declare_rescore, run_rescore),
}


def arguments(parser):
    """Declare the actions and the options of each."""
    help_text = "lattices: a file, a directory or a Kaldi rspecifier; - reads a pipe"
    for sub in add_actions(parser, ACTIONS):
        sub.epilog = f"Formats of lattices:\n{registry.describe_formats(LATTICES)}"
        sub.add_argument("input", metavar="F", help=help_text)
        sub.add("--format")


def run(args):
    return args.act(args)
