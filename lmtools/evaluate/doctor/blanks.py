"""The check of languages that are written without blanks between words."""

from collections.abc import Iterator

from lmtools.evaluate.blanks import find_spacing, remedy_of
from lmtools.evaluate.doctor.finding import HINT, Finding
from lmtools.evaluate.doctor.inputs import DoctorInputs


def blanks(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find texts without blanks, of which metrics of words take a phrase for a word."""
    hyps = (hyp.text for nbest in inputs.nbests for hyp in nbest.hyps)
    for texts, path in ((inputs.refs.values(), inputs.ref), (hyps, inputs.nbest)):
        spacing = find_spacing(texts)
        if spacing.language and not spacing.blanks:
            cause = (
                f"{spacing.language} without blanks between words: WER, and BLEU and TER without"
                " options, take a phrase for a word"
            )
            metrics = [remedy_of(name, spacing.language) for name in ("wer", "bleu", "ter")]
            yield Finding(HINT, path, cause, f"take --metric {', '.join(metrics)}")
            return
