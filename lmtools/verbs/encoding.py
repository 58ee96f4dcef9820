"""What `lmtools embed` and `lmtools sts` share: the options that say how sentence vectors are made.
Without torch, which takes seconds.
"""

from lmtools.verbs.numbers import from_zero, positive

POOLS = ("mean", "max", "eos", "cls")  # the names in lmtools.embed.pooling
MODELS = (
    "directory of a neural model, hf:DIR (a Hugging Face model), words:F (word vectors in a GloVe"
    " or word2vec text file, averaged), tfidf (tf-idf counted on the texts themselves) or"
    " tfidf:TEXT"
)


def add_options(parser, pools, default: str):
    """The options but for the model; `default` says which of the `pools` is taken without
    --pool.
    """
    about = (
        "0 (the embedding layer), 1 ..., numbers with commas between them, last or all (default:"
        " last; of words all)"
    )
    parser.add_argument("--layer", "--layers", type=layers, dest="layers", metavar="L", help=about)
    about = (
        "mean or maximum over tokens, the end of sentence (eos) or its beginning (cls) (default:"
        f" {default})"
    )
    parser.add_argument("--pool", choices=pools, help=about)
    parser.add_argument(
        "--boundaries",
        action="store_true",
        help="mean and max take the boundary tokens in, as BERT's [CLS] and [SEP]",
    )
    about = (
        "of masked models: each token's state from a copy in which it alone is masked, one pass a"
        " token (default: the intact input)"
    )
    parser.add_argument("--masked", action="store_true", help=about)
    parser.add_argument(
        "--cache",
        default="default",
        metavar="DIR",
        help="keeps vectors between runs; or none (default: ~/.cache/lmtools)",
    )
    parser.add_argument(
        "--device", default="auto", help="cpu, cuda, cuda:1 ... (default: %(default)s)"
    )
    parser.add_argument(
        "--precision",
        default="float32",
        help="of matrix products: float32, bfloat16, auto (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-rows",
        type=positive,
        metavar="N",
        help="tokens a batch (default: 256 on a CPU, 4096 on a GPU)",
    )


def layers(text: str) -> str | tuple[int, ...]:
    """The numbers in `0,1,2`; `last` and `all` as they are."""
    return text if text in ("last", "all") else tuple(map(from_zero, text.split(",")))
