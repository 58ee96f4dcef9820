"""Vectors of texts by the options that `lmtools embed` and `lmtools sts` share; imports torch."""

from collections.abc import Sequence

from lmtools.base.computing import Computing
from lmtools.base.log import say
from lmtools.base.options import fill
from lmtools.formats.vectors import SentenceVectors
from lmtools.score.cache import cache_directory
from lmtools.vectors.base import Encoder
from lmtools.vectors.encoders import load_encoder
from lmtools.vectors.pooling import PoolingOptions
from lmtools.vectors.sentences import encode


def encoder_of(args) -> Encoder:
    """Return the encoder that the options say."""
    pooling = PoolingOptions(
        args.layers or "last", args.pool or "mean", args.boundaries, args.masked
    )
    return load_encoder(args.lm, pooling, fill(Computing, args))


def encode_texts(args, encoder: Encoder, texts: Sequence[str]) -> SentenceVectors:
    """Return the vectors of texts; says on standard error which words static vectors lack."""
    values = encode(texts, encoder, cache_directory(args.cache))
    if missing := encoder.describe_missing():
        say(f"{args.lm}: {missing}")
    return SentenceVectors(texts, values, encoder.layers, encoder.signature)
