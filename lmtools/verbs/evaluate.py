"""lmtools evaluate: a metric of hypotheses against references, its confidence interval, and the
comparison with another system.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from lmtools.base.atomic import atomic_text
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate import show
from lmtools.evaluate.corpus import References, is_wer
from lmtools.evaluate.doctor.writing import doubt_writing
from lmtools.evaluate.fit import advise_metric, doubt_references
from lmtools.evaluate.inputs import (
    TextRules,
    Texts,
    cut_words,
    join,
    join_sessions,
    lists_of,
    load,
    load_plain,
    pair_hypotheses,
    references,
    refs_of,
    refuse_first_words,
    same_length,
)
from lmtools.evaluate.metrics import METRIC_HELP, METRICS, ErrorRate
from lmtools.evaluate.nbest import fill_empty, oracle_curve, oracle_texts
from lmtools.evaluate.sacre import Sacre
from lmtools.evaluate.show import LENGTH, WORDS, count_words, find_namer, split_evaluation
from lmtools.evaluate.significance import compare_groups, find_gains, paired_bootstrap
from lmtools.formats import detect, kaldi_text
from lmtools.formats.nbest.stm import StmSegment
from lmtools.formats.texts import KALDI
from lmtools.types import SPEAKER
from lmtools.verbs.help import Rare
from lmtools.verbs.options import GROUPS

EXAMPLES = (
    "lmtools evaluate --ref test.ref --hyp t.txt --against test.jsonl",
    "lmtools evaluate --ref test.ref --hyp t.txt --normaliser librispeech --by words length",
)


def arguments(parser):
    parser.epilog = (
        "A file is Kaldi text (`utt w1 w2 ...`), trn, stm, ctm, or N-best lists, of which the first"
        " hypotheses and the references count."
    )
    help_text = (
        "references (default: those in the N-best lists of --hyp); BLEU, chrF and TER take several"
        " files"
    )
    parser.add("--ref", nargs="+", help=help_text)
    group = parser.groups["input"]
    group.add_argument("--hyp", metavar="F", required=True, help="hypotheses of a system")
    parser.add(
        "--against",
        help="hypotheses of another system, to test whether the difference is significant",
    )
    help_text = (
        "format of --hyp and --against, and a second one for --ref: NAME or NAME:option=value,..."
        " (default: recognised)"
    )
    parser.add("--format", nargs="+", metavar="FMT", help=help_text)
    help_text = "files have no ids: compare them line by line"
    group.add_argument("--plain", action="store_true", help=help_text)
    help_text = (
        "join the texts of each session before they are compared with one reference of it; F:"
        " Kaldi's segments or utt2session (default: `session` of lists, or ids up to the last - or"
        " _)"
    )
    group.add_argument("--session", metavar="F", nargs="?", const="", help=help_text)
    parser.add("--metric", help=f"the metric to compute: {METRIC_HELP} (default: %(default)s)")
    parser.add("--unify", "--map-words")
    parser.groups["normaliser"].description = "applied to hypotheses and references"
    parser.add("--normaliser")
    help_text = (
        "also print tables by speaker (of an stm or lists, or as ids say), speaker=UTT2SPK or"
        " another NAME=MAP, length, label (of an stm), or words (the most frequent confusions,"
        " deletions and insertions)"
    )
    parser.add_argument("--by", nargs="+", default=[], metavar="PART", help=help_text)
    words_help = GROUPS["input"]["--words"]["help"]
    help_text = f"{words_help}, and what changed against --against"
    parser.add("--words", help=help_text)
    help_text = "Kaldi utt2dur, to count false alarms in an hour"
    parser.add_argument("--utt2dur", metavar="F", help=Rare(help_text))
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="also measure the best possible choice from the lists, by depth",
    )
    help_text = "write these best hypotheses as Kaldi text (implies --oracle)"
    parser.add_argument("--oracle-out", metavar="F", help=help_text)
    parser.add("--seed", help="seed of the bootstrap (default: %(default)s)")
    parser.add("--out", required=False, metavar="F.json", help="also write all figures as JSON")


def run(args):
    """Evaluate, print, and write the JSON if asked."""
    hyp, sources, against, rules, segments = read_inputs(args)
    ref, refs = sources[0], References(references(sources), args.metric)
    hyp = hyp if hyp is ref else join(hyp, refs.refs, ref)
    said = {**hyp.speakers, **ref.speakers}
    namers = {by: find_namer(by, segments, refs.refs, said) for by in args.by if by != WORDS}
    against = against and join(against, refs.refs, ref)
    say_lines(advise_metric(refs.texts(), hyp.texts.values(), args.metric, hyp.path))
    tree, first = evaluate_system(refs, hyp, args, prefix="", rules=rules)
    place = hyp.path if ref is hyp else f"{ref.path} beside {hyp.path}"
    say_lines(doubt_references(pair_hypotheses(refs.refs, hyp), place))
    pairs = [(hyp.texts.get(utt, ""), refs_of(ref)[0]) for utt, ref in refs.refs.items()]
    say_lines(doubt_writing(pairs, place, args.metric, verb="evaluate"))
    tree |= break_down(refs, hyp, first, namers, words=WORDS in args.by)
    if args.oracle or args.oracle_out:
        tree["oracle"] = find_oracle(lists_of(ref, hyp, refs.refs), refs, args)
    if against:
        tree["against"], second = evaluate_system(
            refs, against, args, prefix=f"against {against.path}: ", rules=rules
        )
        tree |= compare_systems(refs, hyp, against, first, second=second, args=args)
        tree |= compare_parts(list(refs.refs), first, second, namers, seed=args.seed)
    if args.words:
        evaluate_words = open_door("phrases", "evaluate:evaluate_words", "--words")
        tree |= evaluate_words(refs, hyp, against, args)
    elif args.utt2dur:
        raise UserError("--utt2dur: only --words counts by the hour; give both")
    if args.out:
        with atomic_text(args.out) as out:
            paths = [source.path for source in sources] if len(sources) > 1 else ref.path
            json.dump({"ref": paths, "hyp": hyp.path, **tree}, out, ensure_ascii=False, indent=1)
            out.write("\n")


class Inputs(NamedTuple):
    """Hypotheses, references, another system's, rewritten by rules, and an stm's segments."""

    hyp: Texts
    sources: list[Texts]
    against: Texts | None
    rules: TextRules | None
    segments: Mapping[str, StmSegment]


def read_inputs(args) -> Inputs:
    """Read all texts, by segment where an stm and a ctm are compared by speaker or label."""
    rules = TextRules.read(args.unify, args.normaliser, args.map_words)
    segments: Mapping[str, StmSegment] = {}
    if are_by_segment(args):
        paths = [args.hyp, args.against] if args.against else [args.hyp]
        ref, (hyp, *more), segments = cut_words(args.ref[0], paths)
        sources, against = [ref], more[0] if more else None
    else:
        hyp, sources, against = read_files(args)
    if args.session is not None:
        hyp, against = (one and join_sessions(one, args.session) for one in (hyp, against))
        sources = [
            one if one.lists is None else join_sessions(one, args.session) for one in sources
        ]
    if rules:
        old, hyp = hyp, rules.rewrite(hyp)
        sources = [hyp if ref is old else rules.rewrite(ref) for ref in sources]
        against = against and rules.rewrite(against)
    return Inputs(hyp, sources, against, rules=rules, segments=segments)


def are_by_segment(args) -> bool:
    """Return whether an stm and a ctm are compared by a part that the stm's segments tell."""
    timed = {SPEAKER, "label"} & {*args.by} and args.session is None
    if not timed or args.plain or len(args.ref or ()) != 1:
        return False
    hyp, ref, *_ = [*(args.format or []), None, None]
    specs = ((args.ref[0], ref), (args.hyp, hyp))
    kinds = [spec or (KALDI if path == "-" else detect(path, KALDI)) for path, spec in specs]
    return kinds == ["stm", "ctm"]


def read_files(args) -> tuple[Texts, list[Texts], Texts | None]:
    """Read hypotheses, references, and the other system's hypotheses."""
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
    tree = show.tree(evaluation, interval)
    if isinstance(METRICS[args.metric], ErrorRate):
        tree["writing"] = refs.writing(hyp.texts)[0]
        if tree["writing"]:
            print(prefix + show.writing_line(tree["writing"]))
    return tree, evaluation


def break_down(refs: References, hyp: Texts, result, namers, words: bool) -> dict:
    """Return the tables of an evaluation by part, and by word if asked for, printed on the way."""
    tree: dict = {}
    for by, name_part in namers.items():
        parts = split_evaluation(result, list(refs.refs), name_part)
        print("\n".join(show.part_lines(refs.metric, by, parts)))
        tree[f"by {by.partition('=')[0]}"] = show.parts_tree(refs.metric, parts)
    if words:
        errors = count_words(refs, hyp.texts)
        print("\n".join(show.word_lines(errors)))
        tree["by words"] = show.words_tree(errors)
    return tree


def find_oracle(nbests, refs: References, args) -> list[float]:
    """Return the oracle by depth, printed; its choices are written if asked for."""
    filled = [fill_empty(nbest) for nbest in nbests]
    statistics = [refs.statistics(nbest.utt, [hyp.text for hyp in nbest.hyps]) for nbest in filled]
    curve = oracle_curve(statistics, args.metric)
    print(show.oracle_line(args.metric, curve))
    if args.oracle_out:
        kaldi_text.write(oracle_texts(nbests, statistics, args.metric), args.oracle_out)
    return curve.tolist()


def compare_parts(utts: list[str], first, second, namers, seed: int) -> dict:
    """Return the tests with whole speakers or labels as units, printed on the way."""
    tests = {}
    for by, name_part in namers.items():
        if by != LENGTH and not isinstance(METRICS[first.metric], Sacre):
            pair, groups = (first.statistics, second.statistics), [name_part(u, 0) for u in utts]
            test = compare_groups(*pair, groups, metric=first.metric, seed=seed)
            kind = by.partition("=")[0]
            print(show.groups_line(by, test))
            tests[kind] = dataclasses.asdict(test)
            if isinstance(METRICS[first.metric], ErrorRate):
                gains = find_gains(*pair, first.metric, groups)
                print(gains.describe(first.metric, kind))
                tests[kind]["gains"] = dataclasses.asdict(gains)
    return {"groups": tests} if tests else {}


def compare_systems(refs: References, hyp: Texts, against: Texts, first, second, args) -> dict:
    """Return the tests of two systems, printed; none of references without words."""
    if not METRICS[args.metric].length(first.total):
        return {}
    if isinstance(METRICS[args.metric], Sacre):
        result = METRICS[args.metric].paired_bootstrap(first.statistics, second.statistics)
        print(show.sacre_line(result))
        return {"sacre": dataclasses.asdict(result)}
    result = paired_bootstrap(first.statistics, second.statistics, args.metric, args.seed)
    print(show.bootstrap_line(result))
    trees = {"bootstrap": dataclasses.asdict(result)}
    if is_wer(args.metric):
        result = refs.compare(hyp.texts, against.texts)
        print(show.matched_pairs_line(result))
        trees["matched_pairs"] = dataclasses.asdict(result)
    gains = find_gains(first.statistics, second.statistics, args.metric)
    print(gains.describe(args.metric))
    return trees | {"gains": dataclasses.asdict(gains)}
