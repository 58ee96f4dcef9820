#!/usr/bin/env python3
"""Tokenised text to detokenised text, line by line: utils/detokenise.py en < newstest2013.tok.en >
newstest2013.en
"""

import argparse
import sys

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.text.detokenise import detokeniser


def main() -> str | None:
    """Copy standard input to standard output, detokenised; what to say of a user's mistake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", metavar="LANG", help="en, de, fr ..")
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        detokenised = detokeniser(parser.parse_args().language)
        for _, line in read_lines("-"):
            print(detokenised(line))
    except UserError as error:
        return f"utils/detokenise.py: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
