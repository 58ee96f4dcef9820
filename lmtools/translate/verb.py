"""lmtools translate: N-best lists of translations by a translation model."""

from lmtools.base.computing import Computing
from lmtools.base.log import say
from lmtools.base.options import fill
from lmtools.translate.run import TranslateOptions, translate
from lmtools.verbs.help import Rare
from lmtools.verbs.options import flags_of
from lmtools.verbs.parser import add_settings, read_settings


def arguments(parser):
    parser.epilog = (
        "Hypotheses have two scores: `am`, the sum of the natural-log probabilities of their tokens"
        " and the end, and `norm`, am / tokens^X, by which they are ranked. They have at most twice"
        " the source's tokens and ten. Those of equal text are one, with the better score."
    )
    text = "a model that lmtools train made of pairs (model seq2seq)"
    parser.add("--lm", help=text)
    parser.add("--source", required=True, help="the sentences to translate, one a line")
    text = "their translations, in the same form: a line each or, with --kaldi, of the same ids"
    parser.add("--ref", help=text)
    text = "the first word of each line of --source and --ref is an utterance id"
    parser.add("--kaldi", help=text)
    text = "of the ids where they are the numbers of the lines from 1"
    parser.groups["input"].add_argument("--prefix", metavar="NAME", default="", help=Rare(text))
    parser.add_argument("--beam", **flags_of(TranslateOptions)["--beam"] | {"metavar": "N"})
    add_settings(parser, TranslateOptions, ["length_penalty", "batch"])
    parser.add("--out", metavar="F.jsonl", help="lists as jsonl; a killed run is continued")
    text = "of matrix products: float32, bfloat16, auto; on a CPU also int8 (default: %(default)s)"
    parser.add("--precision", help=text)
    parser.add("--device")


def run(args):
    """Translate, and say on standard error what was made."""
    settings = read_settings(args, TranslateOptions)
    options = TranslateOptions(args.lm, args.beam, computing=fill(Computing, args), **settings)
    done = translate(args.source, args.out, options, args.ref, kaldi=args.kaldi, prefix=args.prefix)
    say(f"{args.out}: {done.hypotheses:,} hypotheses of {done.sentences:,} sentences")
