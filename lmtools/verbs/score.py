"""lmtools score: log-probabilities of every hypothesis of an N-best file."""

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.formats import read
from lmtools.score import ListParts, Sources, score_lists
from lmtools.score.lists import Totals, write_scores
from lmtools.verbs.help import Rare
from lmtools.verbs.options import COMPUTING, PROCESSES
from lmtools.verbs.parser import add_context, add_lm


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Lists from a pipe (--nbest - or an rspecifier such as ark:-) are scored utterance by"
        " utterance, each written as soon as it is done. A wspecifier as --out (ark,t:-) takes"
        " costs, the negated log-probabilities, under Kaldi's keys utt-n."
    )
    parser.add("--nbest", help="N-best lists; - is standard input, in jsonl if not --format")
    parser.add("--format")
    text = (
        "for a translation model: Kaldi text with what each utterance translates; the score is"
        " p(hypothesis | source)"
    )
    parser.add("--source", help=text)
    text = "the same as plain text, one a line, in the order of the lists"
    parser.groups["input"].add_argument("--source-lines", metavar="F", help=Rare(text))
    parser.add("--reverse", "--written", "--experiment")
    add_lm(parser)
    text = (
        "whose words: first (the recogniser's), ref (the references), or F.json, weights of this"
        " model and of scores in the lists: what they choose, utterance by utterance (default:"
        " %(default)s)"
    )
    add_context(parser, "lists are read whole", text, metavar="WHOSE")
    text = "utt#rank, log-probability, tokens; - is standard output"
    parser.add("--out", metavar="F.scores", help=text)
    parser.add(*COMPUTING, *PROCESSES)


def run(args):
    """Score the lists, with one model or every column of an experiment; say what was scored."""
    lists = ListParts(args.nbest, args.format)
    calls = [args]
    if args.experiment:
        from lmtools.verbs.experiment import split_columns  # which imports all of tuning

        calls = split_columns(args)
    for each in calls:
        if each.lm is None:
            from lmtools.verbs.risk import write_risk

            write_risk(each)
            continue
        sources = read_sources(each)
        spec = LMSpec.parse(each.lm, pairs=sources is not None)
        if each.context:
            score_sessions(each, spec)
            continue
        more = {"sources": sources, "written": each.written}
        describe(score_lists(lists, each.out, spec, fill(Computing, each), **more), each.out, spec)


def read_sources(args) -> Sources | None:
    """Return what the hypotheses translate, if anything; UserError for options that contradict."""
    if args.source and args.source_lines:
        raise UserError("--source: --source-lines is given too; leave one out")
    path = args.source or args.source_lines
    if path and args.written:
        raise UserError("--written: is for recognisers; leave it out, or --source")
    if path:
        return Sources.read(path, lines=path == args.source_lines, reverse=args.reverse)
    if args.reverse:
        raise UserError("--reverse: of which source? give --source or --source-lines")
    return None


def describe(totals: Totals, out: str, spec: LMSpec) -> None:
    """Say on standard error what was scored."""
    unknown, note = totals.unknown, ""
    if unknown:
        note = f", {unknown:,} unknown ({unknown / totals.tokens:.2%})"
        if spec.oov_penalty:
            note += f" at a penalty of {unknown * spec.oov_penalty:,.1f} nats in all"
    say(
        f"{out}: {totals.hypotheses:,} hypotheses of {totals.utterances:,} utterances,"
        f" {totals.tokens:,} tokens{note}",
        **vars(totals),
    )


def score_sessions(args, spec):
    """Score lists in the context of the utterances before them, and say what was scored."""
    from lmtools.rescoring.asking import SessionContext, score_in_context  # imports torch
    from lmtools.score import load

    if spec.pairs or args.written:
        given = "--source" if spec.pairs else "--written"
        raise UserError(f"--context: reads the texts of lists; leave {given} out")
    nbests = read(args.nbest, args.format)
    context = SessionContext(args.context, args.context_from, args.sessions)
    computing = fill(Computing, args)
    scores, sessions = score_in_context(nbests, load(spec, computing), computing, context)
    with write_scores(args.out, scores.signature) as write:
        begin = 0
        for nbest in nbests:
            rows = slice(begin, begin + len(nbest.hyps))
            write(nbest, scores.log_prob[rows], scores.tokens[rows])
            begin = rows.stop
    say(
        f"{args.out}: {begin:,} hypotheses of {len(nbests):,} utterances in {sessions:,} sessions,"
        f" {int(scores.tokens.sum()):,} tokens",
        utterances=len(nbests), hypotheses=begin, tokens=int(scores.tokens.sum()),
    )  # fmt: skip
