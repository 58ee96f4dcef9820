"""Checks of N-best lists, references, language-model text and a language model, before anything is
scored.
"""

from collections.abc import Iterator
from dataclasses import replace

from lmtools.evaluate.doctor import inventory, lists, scores, texts
from lmtools.evaluate.doctor.inputs import ERROR, HINT, DoctorInputs, Finding, plural, read_inputs
from lmtools.evaluate.nbest import oracle

# Each check is a function of the inputs that yields findings.
CHECKS = {
    "read": lists.read,
    "ids": lists.ids,
    "first word": texts.first_word,
    "references": lists.references,
    "fit": lists.fit,
    "tokenisation": texts.tokenisation,
    "writing": texts.writing,
    "spelling": texts.spelling,
    "truecasing": texts.truecasing,
    "forms": inventory.forms,
    "characters": inventory.characters,
    "word ids": inventory.word_ids,
    "marks": texts.marks,
    "vocabulary": texts.vocabulary,
    "unseen": texts.unseen,
    "leak": texts.leak,
    "scores": scores.missing,
    "sentinels": scores.sentinels,
    "signs": scores.signs,
    "base": scores.base,
    "order": scores.order,
    "duplicates": lists.duplicates,
    "empty": lists.empty,
    "blanks": lists.blanks,
}

__all__ = [
    "CHECKS",
    "ERROR",
    "HINT",
    "DoctorInputs",
    "Finding",
    "examine",
    "print_findings",
    "read_inputs",
]


def examine(inputs: DoctorInputs) -> dict[str, list[Finding]]:
    """Return what each check finds, by its name, of those that find something."""
    return {name: found for name, check in CHECKS.items() if (found := list(check(inputs)))}


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
    known = [replace(n, ref=inputs.refs[n.utt]) for n in inputs.nbests if n.utt in inputs.refs]
    if known:
        metric = inputs.trial.metric
        curve = oracle(known, metric.title.lower())
        yield f", {metric.title} {curve[0]:.2f}, oracle {curve[-1]:.2f}"
