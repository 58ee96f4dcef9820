"""lmtools doctor: find what would go wrong before anything is scored."""

from lmtools.evaluate.doctor import CHECKS, ERROR, print_findings, read_inputs
from lmtools.evaluate.doctor.inputs import LINES

EXAMPLES = (
    "lmtools doctor --nbest dev.jsonl --text text.txt",
    "lmtools doctor --nbest dev.jsonl --ref dev.ref --lm lm",
)


def arguments(parser):
    parser.epilog = (
        f"Checks: {', '.join(CHECKS)}. Each problem is printed as `level: path:line: cause;"
        " remedy`; the last line has the error rate of the first hypotheses and of the best ones"
        " (oracle). The exit status is 1 if a problem is an error."
    )
    parser.add("--nbest", "--format")
    help_text = "references: Kaldi text, trn, stm, ctm, a manifest (default: those in the lists)"
    parser.add("--ref", help=help_text)
    parser.add("--text", help=f"text of the language model, of which {LINES:,} lines are read")
    help_text = "language model or subword model, whose normaliser is applied to the texts"
    parser.add("--lm", required=False, help=help_text)


def run(args) -> int:
    """Examine, print the findings and a summary; 1 if there are errors."""
    inputs = read_inputs(args.nbest, args.format, args.text, args.ref, lm=args.lm)
    return int(any(f.level == ERROR for found in print_findings(inputs).values() for f in found))
