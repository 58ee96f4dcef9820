"""lmtools score: log-probabilities of every hypothesis of an N-best file."""

import contextlib
from collections.abc import Sequence

from lmtools.base.atomic import is_stream
from lmtools.base.computing import WHOLE, Computing
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec, find_paths
from lmtools.formats.registry import parse_specifier
from lmtools.formats.scores import join_parts
from lmtools.score import ListParts, Sources, score_lists
from lmtools.score.lists import Totals
from lmtools.verbs.help import Rare
from lmtools.verbs.options import CLUSTER, COMPUTING
from lmtools.verbs.parser import add_lm
from lmtools.verbs.parts import Part, run_parts, wanted_command, writing_part

EXAMPLES = (
    "lmtools score --nbest dev.jsonl --lm lm --out dev.scores",
    "lmtools score --nbest test.jsonl --lm mix:lm=0.7,domain=0.3 --out mix.scores",
)


def arguments(parser):
    parser.epilog = (
        "Lists from a pipe (--nbest - or an rspecifier such as ark:-) are scored one by one, and"
        " each is written at once. If --out is a wspecifier (ark,t:-), costs (negated"
        " log-probabilities) are written under Kaldi's keys utt-n."
    )
    parser.add(
        "--nbest", help="N-best lists; - reads a pipe, as jsonl unless --format says otherwise"
    )
    parser.add("--format")
    text = (
        "for a translation model: Kaldi text with the source of each utterance; the score is"
        " log p(hypothesis | source)"
    )
    parser.add("--source", help=text)
    text = "the sources as plain text, one on each line, in the order of the lists"
    parser.groups["input"].add_argument("--source-lines", metavar="F", help=Rare(text))
    parser.add("--reverse", "--written", "--experiment")
    add_lm(parser, required=False)
    parser.add("--asr", "--audio")
    text = "scores to write, lines `utt#rank log-probability tokens`; - prints them"
    parser.add("--out", metavar="F.scores", help=text)
    parser.add(*COMPUTING, *CLUSTER)


def run(args):
    """Score the lists, with one model or every column of an experiment; say what was scored."""
    if args.asr or args.audio:
        score_sound(args)
        return
    if not (args.lm or args.experiment):
        raise UserError("--lm: which language model? give --lm, --experiment, or --asr")
    cmd, lists, calls = wanted_command(args), ListParts(args.nbest, args.format), list_calls(args)
    piped = lists.piped or is_stream(args.out) or bool(parse_specifier(args.out))
    if piped and (args.shard or (args.cmd and cmd)):
        how = "--shard" if args.shard else "--cmd"
        raise UserError(f"{how}: of lists and scores in files; write them to some")
    if piped:
        cmd = None
    for each in calls:
        # it takes no model, so no cluster: the first part writes it whole
        if each.lm is None and not cmd and (args.shard or WHOLE).number == 1:
            from lmtools.verbs.risk import write_risk

            write_risk(each)
        elif each.lm is not None and not cmd:
            sources = read_sources(each)
            spec = LMSpec.parse(each.lm, pairs=sources is not None)
            given = {"sources": sources, "written": each.written, "shard": each.shard or WHOLE}
            reads = [each.nbest, *find_paths(spec.lm)]
            more = (each.source, each.source_lines, spec.adapter)
            reads += filter(None, more)
            whole = contextlib.nullcontext([each.out])
            with writing_part(each, each.out, reads) if each.shard else whole as part:
                totals = part and score_lists(lists, part[0], spec, fill(Computing, each), **given)
            if not each.shard:
                describe(totals, each.out, spec)
    if cmd:
        run_parts(args, cmd, [each.out for each in calls if each.lm is not None])


def score_sound(args) -> None:
    """Score the lists by a recogniser, given their recordings."""
    if not (args.asr and args.audio):
        raise UserError("--asr, --audio: the recogniser and its recordings; give both")
    if args.lm or args.experiment or args.source or args.source_lines:
        raise UserError("--asr: reads sound; leave --lm, --experiment, --source out")
    score = open_door("ears", "lists:score_by_ear", "--asr")
    lists, computing = ListParts(args.nbest, args.format), fill(Computing, args)
    score(lists, args.out, args.asr, args.audio, computing=computing, written=args.written)


def join(parts: Sequence[Part], out: str, **options) -> None:
    join_parts([part.output for part in parts], out)


def list_calls(args) -> list:
    """Return the call of each column: of an experiment, or the one that was given."""
    if not args.experiment:
        return [args]
    from lmtools.verbs.experiment import split_columns  # which imports all of tuning

    return split_columns(args)


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
        f" {totals.tokens:,} tokens{note}"
    )
