"""Checks of N-best lists, references, language-model text and a language model, before anything is
scored.
"""

from lmtools.evaluate.doctor import inventory, lists, scores, texts
from lmtools.evaluate.doctor.inputs import ERROR, HINT, DoctorInputs, Finding, read_inputs

# Each check is a function of the inputs that yields findings.
CHECKS = {
    "read": lists.read,
    "ids": lists.ids,
    "first word": texts.first_word,
    "references": lists.references,
    "fit": lists.fit,
    "tokenisation": texts.tokenisation,
    "writing": texts.writing,
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
    "loops": lists.loops,
    "blanks": lists.blanks,
}

__all__ = ["CHECKS", "ERROR", "HINT", "DoctorInputs", "Finding", "examine", "read_inputs"]


def examine(inputs: DoctorInputs) -> dict[str, list[Finding]]:
    """Return what each check finds, by its name, of those that find something."""
    return {name: found for name, check in CHECKS.items() if (found := list(check(inputs)))}
