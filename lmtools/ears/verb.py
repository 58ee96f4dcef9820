"""lmtools pool: lists of two recognisers of the same recordings, joined."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.ears.lists import with_am
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read, write
from lmtools.rescoring.margins import SOURCE
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.options import COMPUTING

EXAMPLES = (
    "lmtools pool whisper.jsonl vosk.jsonl --out both.jsonl",
    "lmtools pool whisper.jsonl vosk.jsonl --depth 20 --out both.jsonl",
)


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Lists are joined by id; hypotheses of equal words become one, as the first file has it."
        " Own scores of recognisers say nothing of each other's hypotheses and are left out: score"
        " the lists by both ears (lmtools score --asr) and by language models. --asr makes `am`,"
        " for all hypotheses, of one of them."
    )
    help_text = "N-best lists of each recogniser, that whose answer comes first at the beginning"
    parser.add_argument("lists", metavar="F", nargs="+", help=help_text)
    parser.add("--format", help="format of all of them (default: recognised one by one)")
    parser.add("--depth", "--written")
    parser.add("--asr", "--audio")
    parser.add("--out", help="lists to write; - prints them")
    parser.add("--to", *COMPUTING, "--nj")


def write_heard(nbests: list[NBest], args) -> None:
    """Write lists, with an `am` by the recogniser of the options where they name one."""
    if bool(args.asr) != bool(args.audio):
        raise UserError("--asr, --audio: the recogniser and its recordings; give both")
    if args.asr:
        computing = fill(Computing, args)
        nbests = with_am(nbests, args.asr, args.audio, computing=computing, written=args.written)
    write(nbests, args.out, args.to)


def run(args):
    """Read, join, write, and say what the joined lists could reach."""
    if len(args.lists) < 2:
        raise UserError(f"{args.lists[0]}: lists of one recogniser; give those of another, too")
    systems = [
        [replace(nbest, hyps=nbest.hyps[: args.depth]) for nbest in read(path, args.format)]
        for path in args.lists
    ]
    pooled = list(pool_lists(systems, args.lists))
    write_heard(pooled, args)
    say_lines(describe_new(systems[0], pooled, args.out))


def pool_lists(systems: Sequence[Sequence[NBest]], paths: Sequence[str]) -> Iterator[NBest]:
    """Yield the lists of the first system with the hypotheses that others have besides; UserError
    where others lack an utterance.
    """
    others = [{nbest.utt: nbest for nbest in lists} for lists in systems[1:]]
    for nbest in systems[0]:
        hyps: dict[str, Hypothesis] = {}
        for path, known in zip(paths, [{nbest.utt: nbest}, *others], strict=True):
            if nbest.utt not in known:
                raise UserError(
                    f"{path}: no list of {nbest.utt!r}, which {paths[0]} has; decode it there too,"
                    " and write references and ids alike"
                )
            for hyp in known[nbest.utt].hyps:
                words = " ".join(hyp.text.split())
                more = {**hyp.extra, SOURCE: path} if path != paths[0] else hyp.extra
                hyps.setdefault(words, replace(hyp, scores={}, extra=more))
        yield replace(nbest, hyps=tuple(hyps.values()))
