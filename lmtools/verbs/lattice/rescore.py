"""lmtools lattice rescore: new scores on every arc from language models (exact for n-grams);
lattices, N-best lists and texts of them
"""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lmtools.errors import UserError
from lmtools.formats import FORMATS, kaldi_text, registry
from lmtools.formats.lattices import LATTICES, detect
from lmtools.lattice.expand import STATES
from lmtools.rescore import mark
from lmtools.score.lattice_run import LatticeResult, Wanted, run_lattices
from lmtools.score.lattices import LatticeOptions
from lmtools.seal import write_json
from lmtools.verbs.lattice.common import lattices_of, say, weights_of
from lmtools.verbs.numbers import amount, from_zero, positive
from lmtools.verbs.options import SEVERAL_LMS, WEIGHTS, add_references
from lmtools.verbs.references import joined

# Where formats that hold two scores, or one, take the others: (score, those that stay apart)
FOLDED = {
    "kaldi": ("graph", ("am",)),
    "pocketsphinx": ("am", ()),
    "plf": ("am", ()),
    "openfst": ("am", ()),
    "wcn": ("am", ()),
}


def arguments(parser):
    """Declare the action's options."""
    add_references(parser, "lattices", purpose=" of the lists")
    about = "a language model, under its name among the weights"
    parser.add("--lm", **SEVERAL_LMS, help=about)
    group = parser.groups["language model"]
    group.add_argument(
        "--mix",
        action="append",
        default=[],
        metavar="NAME=A:0.6,B:0.4",
        help="LMs A and B interpolated linearly, as NAME",
    )
    about = "take this LM's score out of `graph`, of which it is a part; it becomes `lm`"
    group.add_argument("--old-lm", metavar="DIR", help=about)
    parser.add("--normalise", "--oov-penalty")
    parser.add("--weights", help=f"{WEIGHTS} of the old scores and the new; required")
    parser.add("--max-ngram-order", type=from_zero, default=4)
    parser.add("--tokens")
    about = "drop histories worse than their state's best by more"
    parser.add_argument("--beam", type=amount, default=math.inf, metavar="B", help=about)
    about = "before: drop arcs on no path within B of the best"
    parser.add_argument("--prune-beam", type=amount, metavar="B", help=about)
    about = "before: keep the N best arcs"
    parser.add_argument("--prune-arcs", type=positive, metavar="N", help=about)
    about = "LMs that read both sides: only arcs on a path within B of the best by the other scores"
    parser.add_argument("--cover-beam", type=amount, metavar="B", help=about)
    about = "bound of a rescored lattice (default: %(default)s)"
    parser.add_argument("--states", type=positive, default=STATES, metavar="N", help=about)
    parser.add(
        "--out", required=False, help="rescored lattices; - or a Kaldi wspecifier for a pipe"
    )
    parser.add("--to", default=None, help="their format (default: that of the input)")
    parser.add("--nbest-out", help="N-best lists of the rescored lattices")
    parser.add("--nbest-to")
    parser.add("--depth", default=100, help="hypotheses a list (default: %(default)s)")
    parser.add("--text-out")
    group = parser.groups["output"]
    group.add_argument("--report", metavar="F.json", help="sizes, time, models")
    about = (
        "in the report: how far arcs' scores of LMs that read both sides are from whole sentences',"
        " on the N best paths"
    )
    group.add_argument("--exact", type=positive, metavar="N", help=about)
    parser.add("--device", "--precision", "--nj")


@dataclass
class Tally:
    """What a run came to: sums over lattices (`seconds`: of rescoring, in all processes), and the
    approximation of each as rows.
    """

    lattices: int = 0
    arcs: int = 0
    rescored_arcs: int = 0
    speech: float = 0.0
    seconds: float = 0.0
    near: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    signatures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def add(self, result: LatticeResult) -> None:
        """Enter one lattice."""
        self.lattices += 1
        self.arcs += result.arcs
        self.rescored_arcs += result.rescored_arcs
        self.speech += result.speech
        self.seconds += result.seconds
        self.signatures = result.signatures
        for name, row in result.approximation.items():
            self.near.setdefault(name, []).append(row)

    def line(self) -> str:
        """The sums in words."""
        rate = f", {self.seconds / self.speech:.3f} x real time" if self.speech else ""
        return (
            f"{self.lattices:,} lattices, {self.arcs:,} arcs, rescored {self.rescored_arcs:,};"
            f" {self.seconds:.1f} s{rate}"
        )


def run(args):
    """Rescore lattice by lattice; the first of --out, --nbest-out and --text-out gets each result
    at once, the others all at the end.
    """
    places = [path for path in (args.out, args.nbest_out, args.text_out) if path]
    if not places:
        raise UserError("nothing to write; give --out, --nbest-out or --text-out")
    if sum(path == "-" or path.endswith(":-") for path in places) > 1:
        raise UserError("two results on standard output; give all but one the name of a file")
    source = args.format or detect(args.input)
    target, settings, tally = args.to or source, settings_of(args), Tally()
    into, keep = FOLDED.get(target.partition(":")[0], (None, ("am",)))
    total = args.nbest_to.partition(":")[0] != "jsonl"
    wanted = Wanted(
        bool(args.out),
        args.depth if args.nbest_out else None,
        total,
        bool(args.text_out),
        into,
        keep,
        args.exact,
    )

    def results() -> Iterator[LatticeResult]:
        for result, ref in joined(
            args, run_lattices(lattices_of(args, source), settings, wanted, args.nj)
        ):
            say(result.messages)
            tally.add(result)
            nbest = result.nbest and replace(result.nbest, ref=ref)
            # formats with room for one score lose which is whose
            yield replace(
                result, nbest=nbest if total or not nbest else mark(nbest, result.signatures)
            )

    deliver(args, target, results())
    if args.report:
        report(args, settings, tally)
    print(tally.line(), file=sys.stderr)


def settings_of(args) -> LatticeOptions:
    """The LatticeOptions that the arguments say."""
    lms = pairs(args.lm, "--lm", "NAME=DIR")
    weights = weights_of(args)
    if weights is None:
        raise UserError(
            "no weights of the scores; give --weights, as in --weights am=1,lm=5,ngram=10,words=-1"
        )
    mixtures = {
        name: shares(parts)
        for name, parts in pairs(args.mix, "--mix", "NAME=A:SHARE,B:SHARE").items()
    }
    return LatticeOptions(
        lms, weights, mixtures, args.old_lm, args.prune_beam, args.prune_arcs, args.cover_beam,
        args.max_ngram_order or None,
        args.beam, args.tokens, args.states,
        args.device, args.precision, args.normalise, args.oov_penalty,
    )  # fmt: skip


def pairs(texts: list[str], option: str, form: str) -> dict[str, str]:
    """What stands on both sides of the first `=` of each text."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name and value):
            raise UserError(f"{option} {text}: not {form}; give a name and what it means")
        if name in found:
            raise UserError(
                f"{option} {text}: a second one called {name!r}; give each its own name"
            )
        found[name] = value
    return found


def shares(text: str) -> dict[str, float]:
    """The share of each LM in `A:0.6,B:0.4`."""
    try:
        return {
            name: float(share)
            for name, _, share in (part.rpartition(":") for part in text.split(","))
        }
    except ValueError:
        raise UserError(f"--mix {text}: shares are numbers, as in A:0.6,B:0.4") from None


def deliver(args, target: str, results: Iterator[LatticeResult]) -> None:
    """Write what was asked for."""
    writers = []
    if args.out:
        write = registry.find_format(target, LATTICES).write
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


def report(args, settings: LatticeOptions, tally: Tally) -> None:
    """Write the sums, what was asked, and the mean approximation of LMs that read both sides."""
    rows = [row for some in tally.near.values() for row in some]
    tree = {
        "lattices": tally.lattices, "arcs": tally.arcs, "rescored_arcs": tally.rescored_arcs,
        "speech": tally.speech,
        "seconds": tally.seconds, "nj": args.nj, "lms": dict(settings.lms),
        "signatures": dict(tally.signatures),
        "weights": dict(settings.weights), "order": args.max_ngram_order,
        "tokens": args.tokens, "beam": args.beam if args.beam < math.inf else None,
        "prune_beam": args.prune_beam,
        "prune_arcs": args.prune_arcs, "precision": args.precision, "normalise": args.normalise,
        "oov_penalty": args.oov_penalty,
        "approximation": {
            name: float(np.mean([row[name] for row in rows])) for name in (rows[0] if rows else ())
        },
    }  # fmt: skip
    write_json(tree, args.report, allow_nan=False)
