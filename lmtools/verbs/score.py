"""lmtools score: log-probabilities of every hypothesis of an N-best file."""

import sys

from lmtools.formats import read, scores
from lmtools.score import Options, score_nbest


def arguments(parser):
    add_options(parser)
    parser.add_argument("--nbest", required=True, metavar="F", help="N-best lists")
    parser.add_argument("--format", metavar="FMT", help="format of the lists (default: found out)")
    parser.add_argument("--out", required=True, metavar="F.scores", help="utt#rank, log-probability, tokens; - is standard output")


def add_options(parser):
    """The options that say which language model scores and how, shared with `lmtools ppl`."""
    parser.add_argument("--lm", required=True, metavar="DIR", help="model directory, KenLM or ARPA file, or hf:DIR")
    parser.add_argument("--precision", default="float32", help="of matrix products: float32, bfloat16, auto (default: %(default)s)")
    parser.add_argument("--intact", action="store_true", help="score a masked model in one pass over the unmasked input")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--nj", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--cache", default="default", metavar="DIR", help="keeps scores between runs; or none (default: ~/.cache/lmtools)")
    parser.add_argument("--rows", type=int, default=Options.rows, metavar="N", help="model rows a batch (default: %(default)s)")


def options_of(args) -> Options:
    """The Options that the arguments say."""
    return Options(args.lm, args.precision, args.intact, args.device, args.nj, args.cache, args.rows)


def run(args):
    nbests = read(args.nbest, args.format)
    table, flat = score_nbest(nbests, options_of(args))
    scores.write(table, args.out)
    unknown = f", {flat.unknown.sum() / max(1, flat.tokens.sum()):.2%} unknown tokens" if flat.unknown.any() else ""
    size = f"{len(flat.log_prob):,} hypotheses of {len(nbests):,} utterances, {flat.tokens.sum():,} tokens"
    print(f"{args.out}: {size}{unknown}", file=sys.stderr)
