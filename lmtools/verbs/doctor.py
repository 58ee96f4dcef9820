"""lmtools doctor: find what would go wrong before anything is scored."""

from lmtools.doctor import CHECKS, ERROR, examine, read_inputs
from lmtools.doctor.finding import plural
from lmtools.doctor.inputs import LINES


def arguments(parser):
    """Declare the verb's options."""
    checks = ", ".join(CHECKS)
    parser.epilog = (
        f"Checks: {checks}. Each finding is a line `level: path:line: cause; remedy`; exit status 1"
        " if one of them is an error."
    )
    parser.add_argument("--nbest", required=True, metavar="F", help="N-best lists")
    parser.add_argument("--format", metavar="FMT", help="format of the lists (default: recognised)")
    parser.add_argument(
        "--ref", metavar="F", help="references, Kaldi text (default: those in the lists)"
    )
    parser.add_argument(
        "--text",
        metavar="F",
        help=f"language-model text, one sentence a line (looked at: {LINES:,} lines)",
    )
    parser.add_argument(
        "--lm",
        metavar="DIR",
        help=(
            "language model or subword directory; text and hypotheses are compared as it sees them"
        ),
    )


def run(args) -> int:
    """Examine, print the findings and a summary; 1 if there are errors."""
    inputs = read_inputs(args.nbest, args.format, args.text, args.ref, args.lm)
    findings = examine(inputs)
    for finding in findings:
        print(finding)
    errors = sum(finding.level == ERROR for finding in findings)
    size = (
        f"{plural(inputs.nbests, 'list')} with {sum(len(one.hyps) for one in inputs.nbests):,}"
        " hypotheses"
    )
    print(
        f"{args.nbest}: {size}: {plural(errors, 'error')}, {plural(len(findings) - errors, 'hint')}"
    )
    return int(errors > 0)
