"""lmtools network substitute: new hypotheses with phrases of a glossary in the place of words that
are near to them, for language models to score
"""

from lmtools.base.log import say_lines
from lmtools.formats import read, write
from lmtools.formats.glossary import load_glossary
from lmtools.formats.lexicon import read_lexicon
from lmtools.rescoring.substitute import check_lists, substitute_lists
from lmtools.text.phrases import PhraseSpec
from lmtools.verbs.network.common import describe_new
from lmtools.verbs.parser import add_phrases


def arguments(parser):
    """Declare the action's options."""
    parser.add("--nbest", "--format")
    add_phrases(parser, required=True)
    help_text = (
        "pronunciation dictionary, `word SOUND SOUND ..` a line (Kaldi's lexicon.txt, CMUdict):"
        " words are near by letters and sounds (default: by letters)"
    )
    parser.add_argument("--lexicon", metavar="F", help=help_text)
    parser.add("--depth", default=10, help="new hypotheses a list (default: %(default)s)")
    help_text = (
        "lists; new hypotheses have the extra `substituted`, and a score `near` that `lmtools tune`"
        " weighs; - is standard output"
    )
    parser.add("--out", help=help_text)
    parser.add("--to")


def run(args):
    """Read, substitute, write, and say what the lists could reach."""
    nbests = check_lists(read(args.nbest, args.format), args.nbest)
    glossary = load_glossary(PhraseSpec.parse(args.phrases))
    sounds = read_lexicon(args.lexicon) if args.lexicon else {}
    lists = list(substitute_lists(nbests, glossary, sounds, args.depth))
    write(lists, args.out, args.to)
    say_lines(describe_new(nbests, lists, args.out))
