"""lmtools serve: a process that keeps models and weights, and rescores lists as they come."""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools.api.lm import LM
from lmtools.base.computing import Computing
from lmtools.base.context import current
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import too_long
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say, say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.serve.chooser import SOURCE, Answer, Chooser, spell_error
from lmtools.serve.waiting import Serving
from lmtools.verbs.options import SEVERAL_LMS
from lmtools.verbs.parser import (
    add_lm,
    add_phrases,
    add_settings,
    read_settings,
    recogniser_options,
)

BLOCK = 1 << 16  # bytes of standard input read at once
WHISPER = "default:whisper"
COMPUTING = ("--device", "--precision", "--engine", "--rows")


EXAMPLES = (
    "lmtools serve --asr whisper:whisper-base --lm lm=lm",
    "lmtools serve --lm lm=lm --weights weights.json",
)


def arguments(parser):
    parser.epilog = (
        "POST /rescore takes a list, in the form of a line of jsonl, or an array of lists, and"
        " answers with the chosen text, the order and all scores. With --asr, POST"
        " /v1/audio/transcriptions takes recordings as OpenAI's interface does. GET /health and GET"
        " /metrics tell how the server is. It listens on port 8000 of this machine only; --set"
        " port=ADDRESS:PORT changes that."
    )
    help_text = "in place of HTTP: answer each line of standard input on standard output"
    parser.add("--nbest", required=False, choices=["-"], metavar="-", help=help_text)
    help_text = "also transcribe recordings: the recogniser, and the directory of its model"
    parser.add("--asr", metavar="whisper:DIR", help=help_text)
    parser.add("--vad", "--ear")
    add_phrases(parser)
    help_text = (
        "a language model, under the name that the weights have for it; LM,option=value,... sets"
        " options (see --help-all); with --asr by default the installed English 4-gram, if any"
    )
    takes = SEVERAL_LMS | {"required": False, "default": None, "metavar": "NAME=LM"}
    add_lm(parser, **takes | {"help": help_text})
    help_text = "weights that `lmtools tune` wrote (with --asr by default default:whisper)"
    parser.add("--weights", metavar="F.json", help=help_text)
    parser.add(*COMPUTING)
    add_settings(parser, Serving)


def run(args):
    """Load, say on standard error where it listens, and serve until SIGTERM or SIGINT."""
    serving, most = Serving(**read_settings(args, Serving)), current().max_line
    computing = fill(Computing, args, cache="none")
    if args.ear and not args.asr:
        raise UserError("--ear: hears the recordings of --asr; give that, too")
    if not args.asr and not (args.lm and args.weights):
        raise UserError("serve: nothing to serve; give --lm and --weights, or --asr")
    lms = parse_pairs(args.lm or [], "--lm", "NAME=LM", "write for instance --lm tta=exp/lm/tta")
    specs = {name: LMSpec.parse(lm) for name, lm in lms.items()}
    if args.nbest:
        if args.asr:
            raise UserError("--asr: lines of --nbest are lists; leave one of the two out")
        chooser = Chooser(specs, args.weights, computing)
        say_lines(chooser.warnings)
        answer_lines(chooser, sys.stdin.fileno(), sys.stdout.buffer, most)
        return
    try:
        from lmtools.serve.server import Service, serve
    except ImportError as error:
        raise explain_missing(error, otherwise="use --nbest -") from None
    scorers, transcriber = None, None
    if args.asr:
        loaded = {name: LM(spec, computing) for name, spec in specs.items()}
        scorers = {name: lm.scorer for name, lm in loaded.items()}
        make = open_door("transcribe", "transcriber:Transcriber", "--asr")
        given = None if args.lm is None else loaded
        transcriber = make(
            args.asr, given, args.weights, args.phrases,
            opts=recogniser_options(args), device=args.device, ear=args.ear,
        )  # fmt: skip
        second = transcriber.second
        what = second.describe() if second.active else "none: the recogniser's own text is answered"
        say(f"recogniser {transcriber.asr}; second pass: {what}")
    chooser = None
    if specs and args.phrases is None:  # lists have no phrases here
        chooser = Chooser(specs, args.weights or WHISPER, computing, scorers)
        say_lines(chooser.warnings)
    name = Path((args.asr or "").partition(":")[2]).name
    asyncio.run(serve(Service(chooser, serving, most, transcriber=transcriber, asr=name)))


def answer_lines(chooser: Chooser, source: int, out, most: int) -> None:
    """Write the answer to each line of the descriptor `source` to the binary stream `out`; lines
    that have come together are scored together. Of a line that is no request, or of more than
    `most` bytes, it is `{"error": ...}`. SIGTERM and SIGINT end it like the end of the input.
    """
    for lines in read_together(source, most):
        fit = [line for line in lines if line is not None]
        answers = iter(chooser.answer(fit))
        for line in lines:
            answer = too_long(SOURCE, most) if line is None else next(answers)
            content = answer.content if isinstance(answer, Answer) else spell_error(answer)
            out.write(content + b"\n")
        out.flush()


def read_together(source: int, most: int) -> Iterator[list[bytes | None]]:
    """Yield the lines that are there at once, those of white space apart; None stands for one of
    more than `most` bytes, which is not kept.
    """
    rest, dropping = b"", False
    wake, writing = os.pipe()  # which signals make readable
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: None)
    while wake not in select.select([source, wake], [], [])[0]:
        block = os.read(source, BLOCK)
        *lines, rest = (rest + block).split(b"\n")
        if not block and (rest or dropping):  # the last line has no end
            lines, rest = [*lines, rest], b""
        kept = [None if len(line) > most else line for line in lines]
        if kept and dropping:
            kept[0], dropping = None, False
        if len(rest) > most or (dropping and rest):
            rest, dropping = b"", True
        if kept := [line for line in kept if line is None or line.strip()]:
            yield kept
        if not block:
            return
