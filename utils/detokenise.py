#!/usr/bin/env python3
"""Tokenised text to detokenised text, line by line: utils/detokenise.py en < newstest2013.tok.en >
newstest2013.en
"""

import argparse
import sys

from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines
from lmtools.text.normaliser import detokeniser


def main() -> None:
    """Copy standard input to standard output, detokenised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", metavar="LANG", help="en, de, fr ..")
    sys.stdout.reconfigure(encoding="utf-8")
    detokenised = detokeniser(parser.parse_args().language)
    for _, line in read_lines("-"):
        print(detokenised(line))


if __name__ == "__main__":
    with exit_with_message():
        main()
