"""lmtools doctor: find what would go wrong before anything is scored."""

from collections.abc import Iterator
from dataclasses import replace

from lmtools.evaluate.doctor import CHECKS, ERROR, DoctorInputs, Finding, examine, read_inputs
from lmtools.evaluate.doctor.inputs import LINES, plural
from lmtools.evaluate.nbest import oracle

EXAMPLES = (
    "lmtools doctor --nbest dev.jsonl --text text.txt",
    "lmtools doctor --nbest dev.jsonl --ref dev.ref --lm lm",
)


def arguments(parser):
    """Declare the verb's options."""
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


def print_findings(inputs: DoctorInputs) -> dict[str, list[Finding]]:
    """Print what the checks find and a summary; return the findings by check."""
    by_check = examine(inputs)
    findings = [finding for found in by_check.values() for finding in found]
    for finding in findings:
        print(finding)
    errors = sum(finding.level == ERROR for finding in findings)
    hyps = sum(len(nbest.hyps) for nbest in inputs.nbests)
    size = f"{plural(inputs.nbests, 'list')} with {hyps:,} hypotheses"
    counts = f"{plural(errors, 'error')}, {plural(len(findings) - errors, 'hint')}"
    print(f"{inputs.nbest}: {size}{''.join(describe_rates(inputs))}: {counts}")
    return by_check


def describe_rates(inputs: DoctorInputs) -> Iterator[str]:
    """Yield the error rate of the first and of the best hypotheses, where there are references."""
    lists = [replace(n, ref=inputs.refs[n.utt]) for n in inputs.nbests if n.utt in inputs.refs]
    if lists:
        metric = inputs.trial.metric
        curve = oracle(lists, metric.title.lower())
        yield f", {metric.title} {curve[0]:.2f}, oracle {curve[-1]:.2f}"
