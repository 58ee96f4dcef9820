#!/usr/bin/env python3
"""Text in one form of Unicode, line by line: utils/unify.py nfc,apostrophes < train.txt >
train.unified.txt
"""

import argparse
import sys

from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines
from lmtools.text.unify import UNIFIERS, unifier


def main() -> None:
    """Copy standard input to standard output, unified."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("forms", metavar="FORM,..", help=", ".join(UNIFIERS))
    sys.stdout.reconfigure(encoding="utf-8")
    unify = unifier(parser.parse_args().forms.split(","))
    for _, line in read_lines("-"):
        print(unify(line))


if __name__ == "__main__":
    with exit_with_message():
        main()
