"""`lmtools subword`: learn a subword model, a word list or a character list from text, or take
another toolkit's model or word list.
"""

import argparse
import math

from lmtools.base.atomic import hold_lock
from lmtools.base.log import say_lines
from lmtools.text.blocks import read_again, read_text
from lmtools.text.subword import SUBWORDS, Subword, adopt, train
from lmtools.text.subword.directory import save_subword
from lmtools.text.subword.lists import Listed
from lmtools.text.subword.spelled import Spelled
from lmtools.text.unknown import doubt_text
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import positive
from lmtools.verbs.options import SEVERAL_TEXTS
from lmtools.verbs.parser import add_normaliser, normaliser_of

NOUNS = {"word": "words", "char": "characters"}

EXAMPLES = (
    "lmtools subword --text text.txt --type bpe --vocab-size 200 --case lower --out bpe",
    "lmtools subword --text text.txt --type word --min-count 2 --out words",
)


def arguments(parser):
    parser.epilog = (
        "Words that a word list leaves out share the probability of <unk>; `lmtools score --lm"
        " LM,oov_penalty=P` divides it among them. A list given with --model keeps its order."
    )
    source = parser.groups["input"].add_mutually_exclusive_group(required=True)
    help_text = "text to learn from, one sentence on each line (.gz, .xz; - reads a pipe)"
    parser.add("--text", among=source, **SEVERAL_TEXTS, help=help_text)
    help_text = (
        "use a SentencePiece model, such as ESPnet's bpe.model, or a word list with WORD, WORD ID"
        " (Kaldi's words.txt) or WORD COUNT on each line"
    )
    source.add_argument("--model", metavar="F", help=help_text)
    help_text = "with --text: kind of vocabulary to learn"
    parser.add_argument("--type", choices=SUBWORDS, dest="scheme", help=help_text)
    parser.add(
        "--vocab-size",
        help="number of ids, with the five special ones (default for word and char: all)",
    )
    help_text = "for word and char: drop what occurs less than N times"
    parser.add_argument("--min-count", type=positive, default=1, metavar="N", help=Rare(help_text))
    help_text = "for bpe and unigram: learn from N random sentences (default: %(default)s)"
    parser.add_argument(
        "--sentences", type=positive, default=1_000_000, metavar="N", help=Rare(help_text)
    )
    help_text = "for two-way models: read pieces, and predict the words of this word list"
    parser.add_argument("--words", metavar="DIR", help=Rare(help_text))
    add_normaliser(parser)
    parser.add("--out", metavar="DIR", help="directory to write")
    help_text = "number of processes that count words or characters (default: %(default)s)"
    parser.add("--nj", help=help_text)
    parser.set_defaults(wrong_usage=parser.error)


def run(args: argparse.Namespace) -> None:
    """Learn or take over, save, and say how large it became."""
    if args.model and (args.scheme or args.min_count > 1):
        args.wrong_usage("--type and --min-count are for learning; with --model leave them out")
    if args.text and not args.scheme:
        args.wrong_usage("--text needs --type")
    with hold_lock(args.out):
        subword = (
            adopt(args.model, normaliser_of(args), args.out, args.vocab_size, words=args.words)
            if args.model
            else learn_subword(args)
        )
    spells = f" that spell {subword.words.size} words" if isinstance(subword, Spelled) else ""
    print(
        f"{args.out}: {subword.scheme} vocabulary of {subword.size} ids{spells}, hash"
        f" {subword.hash[:12]}"
    )
    if subword.left_out and subword.left_out.items:
        items, share = subword.left_out
        lacking = f"{items:,} distinct {NOUNS[subword.scheme]} are <unk>" + (
            "" if share is None else f", {share:.3%} of the text"
        )
        print(
            f"{lacking}; oov_penalty={math.log(items):.2f} shares its probability evenly among them"
        )


def learn_subword(args: argparse.Namespace) -> Subword:
    """Return the subword model learnt from the text, saved."""
    kind, normaliser = SUBWORDS[args.scheme], normaliser_of(args)
    for path in args.text:
        say_lines(doubt_text(path, read_again([path])))
    if issubclass(kind, Listed):
        return save_subword(
            kind.learn_files(args.text, normaliser, args.vocab_size, args.min_count, nj=args.nj),
            args.out,
            args.words,
        )
    lines = (line for path in args.text for _, line in read_text(path))
    return train(
        args.scheme, lines, args.vocab_size, normaliser, out_dir=args.out, words=args.words,
        min_count=args.min_count, sentences=args.sentences,
    )  # fmt: skip
