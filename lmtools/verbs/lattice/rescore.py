"""lmtools lattice rescore: new scores on every arc from language models (exact for n-grams);
lattices, N-best lists and texts of them
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from lmtools.base.assignments import parse_pairs
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say, say_lines
from lmtools.base.options import fill
from lmtools.base.seal import write_json
from lmtools.base.specs import LMSpec
from lmtools.formats import FORMATS, kaldi_text, registry
from lmtools.formats.lattices import LATTICES, detect
from lmtools.formats.lists import join_refs
from lmtools.formats.texts import read_texts
from lmtools.rescoring import mark, parse_weights, warn_unseen
from lmtools.score.context import FIRST, REF, RESCORED
from lmtools.score.lattice_run import (
    LatticeContext,
    LatticeOutputs,
    LatticeResult,
    LatticeTotals,
    run_lattices,
    run_sessions,
)
from lmtools.score.lattices import LatticeOptions
from lmtools.text.phrases import PhraseSpec
from lmtools.verbs.help import Rare
from lmtools.verbs.lattice.common import read_lattices
from lmtools.verbs.numbers import amount, from_zero, positive
from lmtools.verbs.options import PROCESSES, SEVERAL_LMS, WEIGHTS
from lmtools.verbs.parser import (
    add_context,
    add_lm,
    add_phrases,
    add_references,
    add_settings,
    read_settings,
)

SESSION = "a session is in memory, and one process works on it"
WHOSE = (
    "whose words: first (the lattices' own best paths), rescored (those found before) or ref (those"
    " of --ref; default: %(default)s)"
)
SETTINGS = ("prune_beam", "prune_arcs", "cover_beam", "tokens", "states")  # of --set


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices", purpose=" of the lists")
    help_text = "a language model, under its name among the weights"
    add_lm(parser, **SEVERAL_LMS, help=help_text)
    group = parser.groups["language model"]
    group.add_argument(
        "--mix",
        action="append",
        default=[],
        metavar="NAME=A:0.6,B:0.4",
        help=Rare("LMs A and B interpolated linearly, as NAME"),
    )
    help_text = "take this LM's score out of `graph`, of which it is a part; it becomes `lm`"
    group.add_argument("--old-lm", metavar="DIR", help=Rare(help_text))
    add_phrases(parser)
    add_context(parser, SESSION, WHOSE, choices=(FIRST, RESCORED, REF))
    parser.add("--weights", help=f"{WEIGHTS}; required")
    help_text = (
        "neural LMs: merge histories of equal last N-1 words; 0: none (default: %(default)s)"
    )
    parser.add("--max-ngram-order", type=from_zero, default=4, help=help_text)
    help_text = "drop histories worse than their state's best by more"
    parser.add_argument("--beam", type=amount, default=math.inf, metavar="B", help=help_text)
    add_settings(parser, LatticeOptions, SETTINGS)
    parser.add(
        "--out", required=False, help="rescored lattices; - or a Kaldi wspecifier for a pipe"
    )
    parser.add("--to", default=None, help="format of the output (default: that of the input)")
    parser.add("--nbest-out", help="N-best lists of the rescored lattices")
    parser.add("--nbest-to")
    parser.add("--depth", default=100, help="hypotheses a list (default: %(default)s)")
    parser.add("--text-out")
    group = parser.groups["output"]
    group.add_argument("--report", metavar="F.json", help=Rare("write sizes, time and models"))
    help_text = (
        "write to the report how far arcs' scores of LMs that read both sides are from whole"
        " sentences', on the N best paths"
    )
    group.add_argument("--exact", type=positive, metavar="N", help=Rare(help_text))
    parser.add("--device", "--precision", "--engine", *PROCESSES)


def run(args):
    """Rescore lattice by lattice; the first of --out, --nbest-out and --text-out gets each result
    at once, the others all at the end.
    """
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
    lattices = read_lattices(args)
    if args.context:
        refs = read_texts(args.ref) if args.ref and args.context_from == REF else {}
        context = LatticeContext(args.context, args.context_from, args.sessions, refs)
        results = run_sessions(lattices, options, wanted, context, nj=args.nj)
    else:
        results = run_lattices(lattices, options, wanted, args.nj)
    for result, ref in join_refs(results, args.ref, args.ref_lines, args.input):
        say_lines(result.messages)
        totals.add(result)
        nbest = result.nbest and replace(result.nbest, ref=ref)
        yield replace(result, nbest=mark(nbest, result.signatures) if marked and nbest else nbest)


def options_of(args) -> LatticeOptions:
    """Return the LatticeOptions that the arguments say."""
    lms = {name: LMSpec.parse(lm) for name, lm in parse_pairs(args.lm, "--lm", "NAME=DIR").items()}
    if not args.weights:
        raise UserError(
            "no weights of the scores; give --weights, as in --weights am=1,lm=5,ngram=10,words=-1"
        )
    mixtures = {
        name: parse_shares(parts)
        for name, parts in parse_pairs(args.mix, "--mix", "NAME=A:SHARE,B:SHARE").items()
    }
    return LatticeOptions(
        lms,
        parse_weights(args.weights),
        mixtures,
        old=LMSpec.parse(args.old_lm) if args.old_lm else None,
        order=args.max_ngram_order or None,
        computing=fill(Computing, args),
        glossary=PhraseSpec.parse(args.phrases) if args.phrases else None,
        beam=args.beam,
        **read_settings(args, LatticeOptions),
    )


def parse_shares(text: str) -> dict[str, float]:
    """Return the share of each LM in `A:0.6,B:0.4`."""
    try:
        return {
            name: float(share)
            for name, _, share in (part.rpartition(":") for part in text.split(","))
        }
    except ValueError:
        raise UserError(f"--mix {text}: shares are numbers, as in A:0.6,B:0.4") from None


def write_results(args, results: Iterator[LatticeResult]) -> None:
    """Write what was asked for."""
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
    """Return what was asked for, as JSON."""
    names = ("tokens", "prune_beam", "prune_arcs")
    return {name: getattr(options, name) for name in names} | {
        "nj": args.nj,
        "precision": args.precision,
        "lms": {name: str(spec) for name, spec in options.lms.items()},
        "weights": dict(options.weights),
        "order": args.max_ngram_order,
        "beam": args.beam if args.beam < math.inf else None,
    }
