"""bench.py lm: throughput and responsiveness of left-to-right models, LSTM against gated
convolutions
"""

from dataclasses import dataclass

from measures.lm import (
    IDS,
    Sizes,
    bench_lm,
    format_table,
    load_scorers,
    published_models,
    read_settings,
)

from kinds.settings import BenchSettings
from lmtools.base.computing import Computing
from lmtools.base.grammar import parse_pairs
from lmtools.base.options import option
from lmtools.models.device import choose_device
from lmtools.verbs.options import SEVERAL_LMS


@dataclass(frozen=True)
class LMBench(BenchSettings):
    """Settings of the benchmark of left-to-right models; a sequence is a word and its end at
    least.
    """

    seconds: float = option(1.0, "of a turn, one step at least", least=0)
    batch: int | None = option(None, "sequences at once (default: 750; 50 on a CPU)", least=1)
    length: int = option(20, "tokens of a sequence, its end too", least=2)
    contiguous: int | None = option(
        None, "tokens of the one long sequence (default: 15000; 2000 on a CPU)", least=2
    )
    published: bool = option(
        False, "LSTM-2048, GCNN-9 and GCNN-8 Bottleneck; without --lm and --conf they are taken"
    )


SETTINGS = LMBench


def arguments(parser):
    """Measure throughput and responsiveness of left-to-right models, LSTM against gated
    convolutions.
    """
    help_text = "whose words are read (default: words drawn by Zipf's law from each vocabulary)"
    parser.add("--text", help=help_text)
    help_text = "a model of these settings, random weights"
    parser.add("--conf", action="append", default=[], metavar="NAME=F.yaml", help=help_text)
    parser.add("--lm", **SEVERAL_LMS, help="a trained model, neural or n-gram")
    parser.add("--vocab-size", default=IDS, help="ids of random models (default: %(default)s)")
    parser.add("--device", default="cpu")


def run(args, settings):
    """Measure; the figures, and the lines of the table."""
    lms = parse_pairs(args.lm, "--lm", "NAME=DIR")
    models = read_settings(parse_pairs(args.conf, "--conf", "NAME=F.yaml"))
    if settings.published or not (lms or models):
        models = published_models() | models
    computing = Computing(args.device, args.precision, "torch")
    scorers = load_scorers(models, lms, args.vocab_size, computing)
    sizes = Sizes.usual(
        choose_device(args.device), settings.batch, settings.length, settings.contiguous
    )
    figures = bench_lm(
        scorers, sizes, settings.repeats, settings.seconds, device=args.device, text=args.text
    ) | {"size": args.vocab_size}
    return figures, list(format_table(figures))
