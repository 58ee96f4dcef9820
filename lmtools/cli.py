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
from types import ModuleType

import lmtools
from lmtools.base.context import current, using
from lmtools.base.doors import collect, door_of_verb, lacks
from lmtools.base.errors import UserError, explain_missing, one_line
from lmtools.base.files import remedy
from lmtools.base.log import say
from lmtools.verbs.commands import find_module
from lmtools.verbs.parser import Parser, add_common

# Each verb is a module with `arguments(parser)` and `run(args)`, of this name in lmtools/verbs or
# in a door (base/doors.py); it is imported only when called, so that the table wing never waits for
# torch. The title of each group stands above its verbs in `lmtools --help`.
VERB_GROUPS = {
    "from lists to a lower error rate": {
        "doctor": "find what would go wrong: case, punctuation, ids, scores, vocabulary",
        "convert": "convert N-best lists and lattices from one format to another",
        "score": "score N-best lists with a language model",
        "tune": "find the best weights of scores on a development set",
        "rescore": "choose the best hypotheses with tuned weights",
        "verify": "check that lists, scores, weights and a text are what a line of rescore signs",
        "show": "show N-best lists in a terminal, with the errors of hypotheses in colours",
        "evaluate": "measure WER, CER or BLEU of hypotheses, with significance",
        "report": "write tables, figures and an HTML page of an experiment",
        "rescue": "rescore lists in one command: estimate, check, score, tune, rescore, evaluate",
    },
    "language models": {
        "subword": "learn a subword model, or a word or character list",
        "corpus": "normalise, segment and binarise text",
        "train": "train a neural language model",
        "ngram": "estimate an n-gram language model",
        "select": "choose the lines of a large text that are most like a domain's",
        "ppl": "measure the perplexity of a text",
    },
    "more": {
        "lattice": "describe and rescore lattices, write their best paths, oracles and posteriors",
        "mbr": "compute the expected BLEU, or error, of each hypothesis: minimum Bayes risk",
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
    except (UserError, OSError, MemoryError, ImportError) as error:
        if args.debug:
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
    if isinstance(error, MemoryError):
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
        lines += ["", f"{title}:", *(f"  {name:9}  {purpose}" for name, purpose in verbs.items())]
    return "\n".join(lines)


def import_verb(name: str) -> ModuleType:
    """Return the module of a verb; exit with a line that names the extra that it needs."""
    try:
        return find_module(name)
    except ImportError as error:
        sys.exit(f"lmtools {name}: {one_line(explain_missing(error))}")


def parse(argv) -> argparse.Namespace:
    """Return the arguments of the verb that `argv` names, with its `run` function."""
    top = Parser(
        prog="lmtools", usage="lmtools VERB ...", description=describe_verbs(), epilog=CLOSING
    )
    top.add_argument("--version", action="version", version=f"lmtools {lmtools.__version__}")
    verbs = top.add_subparsers(
        prog="lmtools", dest="verb", metavar="VERB", required=True, help=argparse.SUPPRESS
    )
    called = find_verb(argv)
    if called not in VERBS and (door := door_of_verb(called)):
        sys.exit(f"lmtools {one_line(lacks(door, str(called)))}")
    for name, purpose in VERBS.items():
        parser = verbs.add_parser(name, description=f"{purpose[0].upper()}{purpose[1:]}.")
        add_common(parser)
        if name == called:
            module = import_verb(name)
            module.arguments(parser)
            parser.set_defaults(run=module.run)
    return top.parse_args(argv, argparse.Namespace(typed=list(argv)))
