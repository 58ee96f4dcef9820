"""lmtools evaluate: a metric of hypotheses against references, its confidence interval, and the
comparison with another system.
"""

import dataclasses
import json
from collections.abc import Callable
from functools import partial

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.evaluate import (
    METRICS,
    References,
    fill_empty,
    oracle_curve,
    oracle_texts,
    paired_bootstrap,
    show,
)
from lmtools.evaluate.blanks import advise_metric
from lmtools.evaluate.fit import doubt_references
from lmtools.evaluate.inputs import (
    Texts,
    lists_of,
    load,
    load_plain,
    pair_hypotheses,
    references,
    refuse_first_words,
    same_length,
)
from lmtools.evaluate.metrics import METRIC_HELP
from lmtools.evaluate.normalising import TextRules
from lmtools.evaluate.sacre import Sacre
from lmtools.formats import kaldi_text
from lmtools.text import NORMALISERS
from lmtools.verbs import say


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Files are Kaldi text (`utt w1 w2 ...`), trn, stm, ctm, or N-best lists, whose first"
        " hypotheses and references count."
    )
    help_text = (
        "references (default: those in the N-best lists of --hyp); of several files BLEU, chrF and"
        " TER take all"
    )
    parser.add("--ref", nargs="+", help=help_text)
    group = parser.groups["input"]
    group.add_argument("--hyp", metavar="F", required=True, help="hypotheses")
    parser.add("--against", help="hypotheses of another system: is the difference significant?")
    help_text = (
        "format of --hyp and --against, and, if it is named too, of --ref: NAME or"
        " NAME:option=value,... (default: recognised)"
    )
    parser.add("--format", nargs="+", metavar="FMT", help=help_text)
    help_text = "files without ids, one sentence a line, joined by line number"
    group.add_argument("--plain", action="store_true", help=help_text)
    parser.add("--metric", help=f"what is computed: {METRIC_HELP} (default: %(default)s)")
    parser.add("--unify", "--map-words")
    help_text = (
        f"of hypotheses and references, before they are compared: {', '.join(NORMALISERS)}, or"
        " NAME:option=value,... (default: as they are)"
    )
    parser.add("--normaliser", help=help_text)
    parser.add_argument(
        "--oracle", action="store_true", help="tell also the best that N-best lists hold, by depth"
    )
    help_text = "implies --oracle: write the best hypothesis of each list by itself as Kaldi text"
    parser.add_argument("--oracle-out", metavar="F", help=help_text)
    parser.add("--seed", help="of the bootstrap's draws (default: %(default)s)")
    parser.add("--out", required=False, metavar="F.json", help="also write everything as JSON")


def run(args):
    """Evaluate, print, and write the JSON if asked."""
    hyp, sources, against = read_inputs(args)
    if rules := TextRules.read(args.unify, args.normaliser, args.map_words):
        hyp, *sources = map(rules.rewrite, [hyp, *sources])
        against = against and rules.rewrite(against)
    ref, refs = sources[0], References(references(sources), args.metric)
    say(advise_metric(refs.texts(), hyp.texts.values(), args.metric, hyp.path))
    tree, first = evaluate_system(refs, hyp, args, prefix="", rules=rules)
    place = hyp.path if ref is hyp else f"{ref.path} beside {hyp.path}"
    say(doubt_references(pair_hypotheses(refs.refs, hyp), place))
    if args.oracle or args.oracle_out:
        tree["oracle"] = find_oracle(lists_of(ref, hyp, refs.refs), refs, args)
    if against:
        tree["against"], second = evaluate_system(
            refs, against, args, prefix=f"against {against.path}: ", rules=rules
        )
        tree |= compare_systems(refs, hyp, against, first, second=second, args=args)
    if args.out:
        with atomic_text(args.out) as out:
            paths = [source.path for source in sources] if len(sources) > 1 else ref.path
            json.dump({"ref": paths, "hyp": hyp.path, **tree}, out, ensure_ascii=False, indent=1)
            out.write("\n")


def read_inputs(args) -> tuple[Texts, list[Texts], Texts | None]:
    """Hypotheses, references, and the other system's hypotheses."""
    if not args.ref and args.plain:
        raise UserError(f"{args.hyp}: plain text holds no references; give them with --ref")
    read_hyp, read_ref = choose_readers(args)
    hyp = read_hyp(args.hyp)
    sources = [read_ref(path) for path in args.ref] if args.ref else [hyp]
    if hyp.lists is None and sources[0] is hyp:
        raise UserError(f"{args.hyp}: holds no references; give them with --ref")
    against = read_hyp(args.against) if args.against else None
    for other in filter(None, () if args.plain else (hyp, against)):
        refuse_first_words(sources[0], other)
    for other in filter(None, [*sources[1:], hyp, against] if args.plain else []):
        same_length(sources[0], other)
    return hyp, sources, against


def choose_readers(args) -> tuple[Callable[[str], Texts], Callable[[str], Texts]]:
    """Return what reads hypotheses and what reads references."""
    if args.plain and args.format:
        raise UserError("--format: plain text has none; leave out --plain or --format")
    if args.plain:
        return load_plain, load_plain
    hyp, ref, *more = [*(args.format or []), None, None]
    if any(more):
        raise UserError("--format: more than two; give that of --hyp, then that of --ref")
    return partial(load, spec=hyp), partial(load, spec=ref)


def evaluate_system(
    refs: References, hyp: Texts, args, prefix: str, rules: TextRules | None = None
):
    """Return the tree and the evaluation of one system, printed on the way."""
    evaluation = refs.evaluate(hyp.texts, hyp.path)
    evaluation = rules.sign(evaluation) if rules else evaluation
    interval = evaluation.interval(args.seed)
    print(prefix + show.line(evaluation, interval))
    if evaluation.missing:
        print(show.missing_line(evaluation))
    return show.tree(evaluation, interval), evaluation


def find_oracle(nbests, refs: References, args) -> list[float]:
    """Return the oracle by depth, printed on the way; its choices from whole lists are written if
    asked for.
    """
    filled = [fill_empty(nbest) for nbest in nbests]
    statistics = [refs.statistics(nbest.utt, [hyp.text for hyp in nbest.hyps]) for nbest in filled]
    curve = oracle_curve(statistics, args.metric)
    print(show.oracle_line(args.metric, curve))
    if args.oracle_out:
        kaldi_text.write(oracle_texts(nbests, statistics, args.metric), args.oracle_out)
    return curve.tolist()


def compare_systems(refs: References, hyp: Texts, against: Texts, first, second, args) -> dict:
    """Return the significance tests of two systems, printed on the way."""
    if isinstance(METRICS[args.metric], Sacre):
        result = METRICS[args.metric].paired_bootstrap(first.statistics, second.statistics)
        print(show.sacre_line(result))
        return {"sacre": dataclasses.asdict(result)}
    result = paired_bootstrap(first.statistics, second.statistics, args.metric, args.seed)
    print(show.bootstrap_line(result))
    trees = {"bootstrap": dataclasses.asdict(result)}
    if args.metric == "wer":
        result = refs.compare(hyp.texts, against.texts)
        print(show.matched_pairs_line(result))
        trees["matched_pairs"] = dataclasses.asdict(result)
    return trees
