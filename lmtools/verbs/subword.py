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


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Words that a word list leaves out are <unk>, which has one probability for all of them;"
        " `lmtools score --lm LM,oov_penalty=P` divides it. A list that is taken keeps its order;"
        " log-uniform noise and adaptive softmax rank ids by how often training has them."
    )
    source = parser.groups["input"].add_mutually_exclusive_group(required=True)
    help_text = "text to learn from, one sentence a line (.gz, .xz, -)"
    parser.add("--text", among=source, **SEVERAL_TEXTS, help=help_text)
    help_text = (
        "take a SentencePiece model, such as ESPnet's bpe.model, or a word list: WORD, WORD ID"
        " (Kaldi's words.txt) or WORD COUNT a line"
    )
    source.add_argument("--model", metavar="F", help=help_text)
    help_text = "with --text: what the vocabulary is made of"
    parser.add_argument("--type", choices=SUBWORDS, dest="scheme", help=help_text)
    parser.add("--vocab-size", help="ids in all, five specials included; lists: default all")
    help_text = "word and char: drop what occurs less often"
    parser.add_argument("--min-count", type=positive, default=1, metavar="N", help=Rare(help_text))
    help_text = "bpe and unigram: learn from a random sample"
    parser.add_argument(
        "--sentences", type=positive, default=1_000_000, metavar="N", help=Rare(help_text)
    )
    help_text = "spell words by these pieces and predict those of this list: for two-way models"
    parser.add_argument("--words", metavar="DIR", help=Rare(help_text))
    add_normaliser(parser)
    parser.add("--out", metavar="DIR", help="directory to write")
    help_text = "word and char: processes that count; the list is the same for any number"
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
