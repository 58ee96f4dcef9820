"""The command `lmtools VERB`: one verb a line of a recipe's run.sh, one module a verb in
lmtools/verbs.
"""

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence

import lmtools
from lmtools.base.context import current, using
from lmtools.base.doors import collect, door_of_verb, lacks
from lmtools.base.errors import UserError, explain_missing, one_line, out_of_memory
from lmtools.base.files import remedy
from lmtools.base.log import say
from lmtools.verbs.help import WRONG_USAGE, HelpParser, suggest
from lmtools.verbs.parser import make_parser

# Each verb is a module with `arguments(parser)` and `run(args)`, of this name in lmtools/verbs or
# in a door (base/doors.py); it is imported only when called, so that the table wing never waits for
# torch. The title of each group stands above its verbs in `lmtools --help`.
VERB_GROUPS: dict[str, dict[str, str]] = {
    "transcribe recordings": {},
    "make N-best lists": {},
    "rescore N-best lists": {
        "rescue": "rescore lists in one command, from a text to a table of error rates",
        "evaluate": "measure WER, CER or BLEU, with significance",
        "show": "print lists in a terminal, with the errors in colours",
        "doctor": "look for problems: case, punctuation, ids, scores, vocabulary",
        "convert": "convert lists and lattices, normalise their text, attach references",
        "score": "score lists with a language model",
        "tune": "find the weights of the scores on a development set",
        "rescore": "choose the best hypotheses with these weights",
        "report": "write the tables, figures and web page of an experiment",
    },
    "train language models": {
        "ngram": "estimate, mix, prune or convert an n-gram language model",
        "ppl": "measure the perplexity of a text",
        "select": "choose the lines of a large text that are like a domain's",
        "subword": "learn a subword model, or a list of words or characters",
        "corpus": "normalise, segment and binarise text",
        "train": "train a neural language model",
    },
    "more": {
        "lattice": "describe lattices, rescore them, write lists, oracles and posteriors",
        "mbr": "score lists by expected BLEU or error, for minimum Bayes risk",
        "merge": "join the parts of an output that --shard I/N made",
    },
}
for _verb, (_title, _purpose, _) in collect("VERBS").items():
    VERB_GROUPS[_title][_verb] = _purpose
VERBS = {name: purpose for group in VERB_GROUPS.values() for name, purpose in group.items()}
SETTINGS = ("max_line", "allow_commands")  # options that are fields of Context
CLOSING = "lmtools VERB --help explains a verb and its usual options, --help-all every option"


def main(argv=None) -> int:
    """Run one verb; 0 done, 1 the user's input is wrong, 2 wrong usage, 3 done but for what could
    not be (`decode`).
    """
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # text is UTF-8 in any locale
            stream.reconfigure(encoding="utf-8", errors="replace")
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        current()
    except UserError as error:  # a variable of the environment is wrong
        print(f"lmtools: {one_line(error)}", file=sys.stderr)
        return 1
    try:
        with using(verb=find_verb(argv)):
            return run_verb(parse(argv))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def open_closed_streams() -> None:
    """Open the standard streams that were closed (`>&-`) on nothing: what is opened next would
    take their numbers.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
            os.set_inheritable(getattr(sys, name).fileno(), True)


def run_verb(args: argparse.Namespace) -> int:
    """Run the verb that `args` are of; return the exit status, as `main`."""
    settings = {name: getattr(args, name, None) or None for name in SETTINGS}
    try:
        with using(**settings):
            status = args.run(args)
        sys.stdout.flush()
        return status or 0
    except BrokenPipeError:  # `lmtools ... | head` is no mistake
        silence_output()
        return 0
    # OSError: standard output on a full disk, a directory that went away; ImportError: an extra
    except (UserError, OSError, MemoryError, ImportError, RuntimeError) as error:
        if args.debug or (isinstance(error, RuntimeError) and not out_of_memory(error)):
            raise
        say(f"lmtools {args.verb}: {one_line(explain_error(error))}")
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            return 1
        silence_output()
        return 1


def find_verb(argv: Sequence[str]) -> str | None:
    """Return the first word of the command line that is no option."""
    return next((word for word in argv if not word.startswith("-")), None)


def explain_error(error: Exception) -> Exception:
    """Return an error as the user needs it."""
    if out_of_memory(error):
        return UserError(
            f"not enough memory ({str(error) or 'no more was given'}); give it less at a time, or a"
            " larger machine"
        )
    if isinstance(error, ImportError):
        return explain_missing(error)
    if isinstance(error, OSError):
        name = (
            "standard output or a temporary file ($TMPDIR)"
            if error.filename is None
            else error.filename
        )
        return UserError(f"{name}: {error.strerror or error}; {remedy(error)}")
    return error


def silence_output() -> None:
    """Send the rest of standard output nowhere: nobody reads it, or it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def describe_verbs() -> str:
    """Return what lmtools is for and its verbs by group, a line each."""
    # the rest of the docstring is for whoever reads the package
    lines = [" ".join((lmtools.__doc__ or "").partition("\n\n")[0].split())]
    for title, verbs in VERB_GROUPS.items():
        rows = [f"  {name:10}  {purpose}" for name, purpose in verbs.items()]
        lines += ["", f"{title}:", *rows] if rows else []
    return "\n".join(lines)


def parse(argv) -> argparse.Namespace:
    """Return the arguments of the verb that `argv` names, with its `run` function."""
    called = find_verb(argv)
    place = len(argv) if called is None else argv.index(called)
    top = HelpParser(
        prog="lmtools", usage="lmtools VERB ...", description=describe_verbs(), epilog=CLOSING
    )
    top.add_argument("--version", action="version", version=f"lmtools {lmtools.__version__}")
    top.parse_args(argv[:place])
    if called is None:
        top.print_help()
        sys.exit(WRONG_USAGE)
    if called not in VERBS:
        if door := door_of_verb(called):
            sys.exit(f"lmtools {one_line(lacks(door, called))}")
        top.refuse_gone(called)
        top.error(f"no verb {called!r}{suggest(called, VERBS)}")
    purpose = VERBS[called]
    try:
        parser = make_parser(called, description=f"{purpose[0].upper()}{purpose[1:]}.")
    except ImportError as error:
        sys.exit(f"lmtools {called}: {one_line(explain_missing(error))}")
    return parser.parse_args(argv[place + 1 :], argparse.Namespace(typed=list(argv)))
