"""lmtools bench lm: throughput and responsiveness of left-to-right models, LSTM against gated
convolutions
"""

import torch

from lmtools.assignments import parse_pairs
from lmtools.bench.lm import (
    IDS,
    Sizes,
    bench_lm,
    format_table,
    load_scorers,
    published_models,
    read_settings,
)
from lmtools.device import choose_device
from lmtools.errors import UserError
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import positive
from lmtools.verbs.options import SEVERAL_LMS


def arguments(parser):
    """Declare the benchmark's options."""
    help_text = "whose words are read (default: words drawn by Zipf's law from each vocabulary)"
    parser.add("--text", help=help_text)
    help_text = "a model of these settings, random weights"
    parser.add("--conf", action="append", default=[], metavar="NAME=F.yaml", help=help_text)
    parser.add("--lm", **SEVERAL_LMS, help="a trained model, neural or n-gram")
    help_text = "LSTM-2048, GCNN-9 and GCNN-8 Bottleneck; without --lm and --conf they are taken"
    parser.add_argument("--published", action="store_true", help=Rare(help_text))
    parser.add("--vocab-size", default=IDS, help="ids of random models (default: %(default)s)")
    parser.add("--batch", help="sequences at once (default: 750; 50 on a CPU)")
    help_text = "tokens of a sequence, its end too (default: %(default)s)"
    parser.add("--length", default=20, help=help_text)
    help_text = "tokens of the one long sequence (default: 15000; 2000 on a CPU)"
    parser.add_argument("--contiguous", type=positive, metavar="N", help=Rare(help_text))
    parser.add("--repeats", "--seconds")
    parser.add("--device", default="cpu")


def run(args):
    """Measure; the figures, and the lines of the table."""
    if min(args.length, args.contiguous or 2) < 2:
        raise UserError(
            "--length, --contiguous: a sequence is a word and its end at least; give 2 or more"
        )
    lms = parse_pairs(args.lm, "--lm", "NAME=DIR")
    settings = read_settings(parse_pairs(args.conf, "--conf", "NAME=F.yaml"))
    if args.published or not (lms or settings):
        settings = published_models() | settings
    torch.set_num_threads(args.threads)
    scorers = load_scorers(settings, lms, args.vocab_size, args.device, precision=args.precision)
    sizes = Sizes.usual(choose_device(args.device), args.batch, args.length, args.contiguous)
    figures = bench_lm(
        scorers, sizes, args.repeats, args.seconds, device=args.device, text=args.text
    ) | {"size": args.vocab_size}
    return figures, list(format_table(figures))
