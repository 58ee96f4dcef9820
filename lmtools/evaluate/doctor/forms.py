"""Checks for the same words in another form of Unicode, and for ids in the place of words."""

from collections import Counter
from collections.abc import Iterator

from lmtools.evaluate.doctor.finding import ERROR, Finding, grade_rate, share, some
from lmtools.evaluate.doctor.inputs import DoctorInputs, most
from lmtools.evaluate.doctor.inventory import show_characters
from lmtools.evaluate.doctor.profile import Profile
from lmtools.evaluate.doctor.texts import name_profile
from lmtools.evaluate.doctor.trials import convert_options, describe
from lmtools.text.unify import UNIFIERS, unifier

# What a model's own normaliser does to text and hypotheses, by form
LEARNT = {
    "apostrophes": "--apostrophe straight",
    "nfc": "--unicode-form NFC",
    "nfkc": "--unicode-form NFKC",
}
TOLD = 3  # characters a side
GAPS, FEW = 0.1, 0.2  # blanks a letter that are many; and few, as a share of the other side's
LETTERS = 0.2  # of the characters of a text, if it is of such a script
NUMBERS = 0.9  # of the words of a side that are ids


def forms(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find the same words in other forms on both sides, with what each brings."""
    names = [name for name in inputs.remedies if name in UNIFIERS and name != "pieces"]
    if names:
        yield compare_references(inputs, names)
    if inputs.text_forms:
        yield compare_text(inputs, inputs.text, inputs.text_forms)
    if inputs.text and not inputs.model_hyps.signs and not inputs.text.signs:
        yield from compare_gaps(inputs.model_hyps, inputs.text)


def compare_references(inputs: DoctorInputs, names: list[str]) -> Finding:
    """Return the finding on hypotheses and references that the forms `names` bring together."""
    trial, others = inputs.trial, [name for name in inputs.remedies if name not in names]
    before, after = trial.rate(others), trial.rate(inputs.remedies)
    rates = f"{trial.metric.title} {trial.rate():.1f} as written"
    if others:
        rates += f", {before:.1f} {describe(others)}"
    rates += f", {after:.1f}{' also' * bool(others)} {describe(names)}"
    if len(names) > 1:
        without = (trial.rate([n for n in inputs.remedies if n != name]) for name in names)
        gains = (f"{name} {rate - after:.1f}" for name, rate in zip(names, without, strict=True))
        rates += f" ({', '.join(gains)} of it)"
    place, odd = find_odd(inputs.hyps, inputs.references)
    level = grade_rate(before - after, 0, 1) or ERROR
    remedy = f"write both alike: {inputs.command(inputs.remedies)}"
    return Finding(level, place, f"{rates}{odd}", remedy)


def compare_text(inputs: DoctorInputs, text: Profile, names) -> Finding:
    """Return the finding on hypotheses, as the model sees them, and its text that forms bring
    together.
    """
    words, unify = inputs.model_hyps.words, unifier(names)
    known = {unify(word) for word in text.words}
    counts = [
        sum(count for word, count in words.items() if is_known(word))
        for is_known in (text.words.__contains__, lambda word: unify(word) in known)
    ]
    place, odd = find_odd(inputs.model_hyps, text)
    cause = (
        f"{share(counts[0], words.total())} words of the hypotheses are in {text.path} as written,"
        f" {counts[1]:,} {describe(names)}{odd}"
    )
    remedy = f"lmtools subword {' '.join(LEARNT.get(name, '') for name in names)}"
    if not LEARNT.keys() >= set(names):
        listed = ",".join(names)
        remedy = f"{convert_options(names)}, and of the text utils/unify.py {listed} < {text.path}"
    level = grade_rate((counts[1] - counts[0]) / words.total(), 0, 0.02) or ERROR
    return Finding(level, place, cause, f"write both alike: {remedy}")


def compare_gaps(hyps: Profile, text: Profile) -> Iterator[Finding]:
    """Find Chinese, Japanese, Thai .. with blanks between words on one side alone."""
    if not all(side.blankless > LETTERS * side.letters(bool) for side in (hyps, text)):
        return
    for more, less in ((hyps, text), (text, hyps)):
        rate = more.gaps / more.blankless
        if rate > GAPS and less.gaps / less.blankless < FEW * rate:
            cause = (
                f"{name_profile(more)} blanks between letters of a script without blanks"
                f" ({share(more.gaps, more.blankless)}), {name_profile(less)} hardly any"
            )
            remedy = f"lmtools convert --unify blanks, and utils/unify.py blanks < {text.path}"
            yield Finding(ERROR, more.path, cause, f"write both alike: {remedy}")


def find_odd(hyps: Profile, other: Profile) -> tuple[str, str]:
    """Return the place of the most frequent character that one side alone has and that is no letter
    of a to z, and what both have alone, in words.
    """
    place, parts = hyps.path, []
    for side, lacking in ((hyps, other), (other, hyps)):
        odd = Counter(
            {
                c: n
                for c, n in side.characters.items()
                if not lacking.characters[c] and not (c.isascii() and c.isalnum())
            }
        )
        if odd:
            place = side.first[most(odd, odd)[0]] if not parts else place
            parts.append(f"only {name_profile(side)} {show_characters(odd, TOLD)}")
    return place, f" ({'; '.join(parts)})" if parts else ""


def word_ids(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find numbers on one side where the other has words."""
    sides = [side for side in (inputs.hyps, inputs.references, inputs.text) if side and side.lines]
    shares = [share_of_numbers(side) for side in sides]
    for side, part in zip(sides, shares, strict=True):
        numbers = [word for word in side.words if word.isdecimal()]
        if part > NUMBERS and min(shares) < 0.1 and max(map(len, numbers)) > 2:
            cause = f"{name_profile(side)} numbers for words ({some(numbers, 3)}): ids of a table?"
            remedy = "name the table: lmtools convert --format kaldi-nbest:words=words.txt"
            yield Finding(ERROR, side.path, cause, remedy)


def share_of_numbers(profile: Profile) -> float:
    """Return the share of its words that are numbers."""
    numbers = sum(count for word, count in profile.words.items() if word.isdecimal())
    return numbers / max(1, profile.words.total())
