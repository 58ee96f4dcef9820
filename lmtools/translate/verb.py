"""lmtools translate: N-best lists of translations by a translation model."""

from lmtools.base.computing import Computing
from lmtools.base.log import say
from lmtools.base.options import fill
from lmtools.translate.run import TranslateOptions, translate
from lmtools.verbs.help import Rare
from lmtools.verbs.options import flags_of
from lmtools.verbs.parser import add_settings, read_settings

EXAMPLES = (
    "lmtools translate --lm translator --source test.source --out lists.jsonl",
    "lmtools translate --lm translator --source test.source --beam 10 --out top10.jsonl",
)


def arguments(parser):
    parser.epilog = (
        "Each hypothesis has two scores: `am`, its log-probability, and `norm`, am /"
        " tokens^length_penalty, which ranks the list. It has at most 2 n + 10 tokens if the source"
        " has n."
    )
    text = "translation model that `lmtools train` wrote (model: seq2seq)"
    parser.add("--lm", help=text)
    parser.add("--source", required=True, help="sentences to translate, one on each line")
    text = "reference translations, one on each line or, with --kaldi, with the same ids"
    parser.add("--ref", help=text)
    text = "the first word of each line of --source and --ref is its id"
    parser.add("--kaldi", help=text)
    text = "begin ids with NAME if they are line numbers"
    parser.groups["input"].add_argument("--prefix", metavar="NAME", default="", help=Rare(text))
    parser.add_argument("--beam", **flags_of(TranslateOptions)["--beam"] | {"metavar": "N"})
    add_settings(parser, TranslateOptions, ["length_penalty", "batch"])
    parser.add(
        "--out",
        metavar="F.jsonl",
        help="lists to write, as jsonl; the same command continues a run that was stopped",
    )
    parser.add("--precision", "--device")


def run(args):
    """Translate, and say on standard error what was made."""
    settings = read_settings(args, TranslateOptions)
    options = TranslateOptions(args.lm, args.beam, computing=fill(Computing, args), **settings)
    done = translate(args.source, args.out, options, args.ref, kaldi=args.kaldi, prefix=args.prefix)
    say(f"{args.out}: {done.hypotheses:,} hypotheses of {done.sentences:,} sentences")
