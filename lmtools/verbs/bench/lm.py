"""lmtools bench lm: throughput and responsiveness of left-to-right models, LSTM against gated
convolutions
"""

import torch

from lmtools.bench.lm import IDS, Sizes, bench_lm, lines, load_scorers, parsed, published
from lmtools.device import choose_device
from lmtools.errors import UserError
from lmtools.verbs.bench.common import named, save
from lmtools.verbs.numbers import amount, positive


def arguments(parser):
    """Declare the benchmark's options."""
    parser.add_argument(
        "--lm",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a trained model, neural or n-gram",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=F.yaml",
        help="a model of these settings, random weights",
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help=(
            "LSTM-2048, GCNN-9 and GCNN-8 Bottleneck of conf/; without --lm and --conf they are"
            " taken"
        ),
    )
    parser.add_argument(
        "--size",
        type=positive,
        default=IDS,
        metavar="N",
        help="ids of random models (default: %(default)s)",
    )
    parser.add_argument(
        "--text",
        metavar="F",
        help="whose words are read (default: words drawn by Zipf's law from each vocabulary)",
    )
    parser.add_argument(
        "--batch", type=positive, metavar="N", help="sequences at once (default: 750; 50 on a CPU)"
    )
    parser.add_argument(
        "--length",
        type=positive,
        default=20,
        metavar="N",
        help="tokens of a sequence, its end too (default: %(default)s)",
    )
    parser.add_argument(
        "--contiguous",
        type=positive,
        metavar="N",
        help="tokens of the one long sequence (default: 15000; 2000 on a CPU)",
    )
    parser.add_argument(
        "--repeats",
        type=positive,
        default=3,
        metavar="N",
        help="turns of each model; median (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=amount,
        default=1.0,
        metavar="S",
        help="of a turn, one call at least (default: %(default)s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda ... (default: %(default)s)")


def run(args):
    """Measure, write, and print the table."""
    if min(args.length, args.contiguous or 2) < 2:
        raise UserError(
            "--length, --contiguous: a sequence is a word and its end at least; give 2 or more"
        )
    lms, confs = named(args.lm), parsed(args.conf)
    if args.published or not (lms or confs):
        confs = published() | confs
    torch.set_num_threads(args.threads)
    scorers = load_scorers(confs, lms, args.size, args.device, args.precision)
    sizes = Sizes.usual(choose_device(args.device), args.batch, args.length, args.contiguous)
    figures = bench_lm(scorers, sizes, args.repeats, args.seconds, args.device, args.text) | {
        "size": args.size
    }
    save(figures, args.out)
    print("\n".join(lines(figures)))
