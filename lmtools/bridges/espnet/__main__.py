"""`python -m lmtools.bridges.espnet`: write a model for ESPnet, and run ESPnet's programs so that
they can load it.
"""

import argparse
import sys

from lmtools.base.errors import UserError, explain_missing, one_line
from lmtools.base.log import say
from lmtools.base.specs import find_model

try:
    from lmtools.bridges.espnet.export import CONFIG, WEIGHTS, export_model, read_tokens
except ImportError as error:  # torch
    sys.exit(f"lmtools.bridges.espnet: {one_line(explain_missing(error))}")

USAGE = f"""python -m lmtools.bridges.espnet export --lm DIR --token-list F --out OUT
       python -m lmtools.bridges.espnet asr_inference --lm_train_config OUT/{CONFIG} \\
           --lm_file OUT/{WEIGHTS} ...

The first writes a model directory of lmtools train for ESPnet. The second is ESPnet's own program
(espnet2.bin.asr_inference; any other of espnet2.bin likewise) with all its options; it needs the
Python in which ESPnet is installed."""


def main(argv: list[str]) -> int:
    """Return 0: done, 1: the input is wrong, 2: wrong usage; or what ESPnet exits with."""
    if argv[:1] not in ([], ["export"]) and not argv[0].startswith("-"):
        return report_errors(launch_program, argv[0], argv[1:])
    parser = argparse.ArgumentParser("python -m lmtools.bridges.espnet", usage=USAGE)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("export", help="write a model directory for ESPnet")
    text = "model directory of lmtools train or installed model, left to right"
    command.add_argument("--lm", required=True, metavar="DIR", help=text)
    text = "config.yaml of the ESPnet recogniser, or its tokens.txt"
    command.add_argument("--token-list", required=True, metavar="F", help=text)
    text = f"directory to write: {CONFIG} and {WEIGHTS}"
    command.add_argument("--out", required=True, metavar="OUT", help=text)
    return report_errors(run_export, parser.parse_args(argv))


def run_export(args: argparse.Namespace) -> None:
    tokens = read_tokens(args.token_list)
    lacking = export_model(find_model(args.lm), tokens, args.token_list, args.out)
    unknown = ""
    if lacking:
        unknown = f"; {len(lacking)} of them, such as {lacking[0]!r}, get the score of <unk>"
    print(f"{args.out}: {len(tokens)} tokens{unknown}")
    print(
        f"python -m lmtools.bridges.espnet asr_inference --lm_train_config {args.out}/{CONFIG}"
        f" --lm_file {args.out}/{WEIGHTS} ..."
    )


def launch_program(program: str, arguments: list[str]) -> None:
    try:
        import espnet2  # noqa: F401
    except ImportError:
        raise UserError(
            f"{sys.executable}: ESPnet is not installed here; use the Python that has it"
        ) from None
    from lmtools.bridges.espnet.plugin import run_program

    run_program(program, arguments)


def report_errors(function, *arguments) -> int:
    try:
        function(*arguments)
    except UserError as error:
        say(f"lmtools.bridges.espnet: {one_line(error)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
