"""lmtools serve: a process that keeps models and weights, and rescores lists as they come."""

import asyncio
import sys

from lmtools.base.computing import Computing
from lmtools.base.context import current
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.serve.chooser import Chooser
from lmtools.serve.lines import answer_lines
from lmtools.serve.server import Server, Serving
from lmtools.verbs.options import SEVERAL_LMS
from lmtools.verbs.parser import add_lm, add_settings, read_settings

COMPUTING = ("--device", "--precision", "--engine", "--rows")


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "POST /rescore takes a list as a line of nbest.jsonl has it, or an array of such, and"
        " answers with what is chosen, the order and all scores; GET /health, GET /metrics. It"
        " listens on this machine alone, port 8000, unless --set host=ADDRESS port=N says another."
    )
    help_text = "- answers lines of standard input on standard output, in place of HTTP"
    parser.add("--nbest", required=False, choices=["-"], metavar="-", help=help_text)
    help_text = (
        "a language model (LM,option=value,... gives it options, see --help-all) under the name"
        " that the weights have; once for each"
    )
    add_lm(parser, **SEVERAL_LMS | {"required": True, "metavar": "NAME=LM", "help": help_text})
    help_text = "what `lmtools tune` wrote; or default:whisper"
    parser.add("--weights", required=True, metavar="F.json", help=help_text)
    parser.add(*COMPUTING)
    add_settings(parser, Serving)


def run(args):
    """Load, say on standard error where it listens, and serve until SIGTERM or SIGINT."""
    serving = Serving(**read_settings(args, Serving))
    example = "write for instance --lm tta=exp/lm/tta"
    lms = parse_pairs(args.lm, "--lm", "NAME=LM", example)
    specs = {name: LMSpec.parse(lm) for name, lm in lms.items()}
    chooser = Chooser(specs, args.weights, fill(Computing, args, cache="none"))
    say_lines(chooser.warnings)
    most = current().max_line
    if args.nbest:
        answer_lines(chooser, sys.stdin.fileno(), sys.stdout.buffer, most)
    else:
        asyncio.run(Server(chooser, serving, most).run())
