"""Characters that one side alone has, by kind: digits, accents, letters of another script,
full-width ones; the same words in another form of Unicode; ids in the place of words.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from string import ascii_letters

from lmtools.base.errors import UserError
from lmtools.evaluate.doctor.inputs import (
    ERROR,
    HINT,
    WARNING,
    DoctorInputs,
    Finding,
    grade_rate,
    most,
    plural,
    share,
    some,
)
from lmtools.evaluate.doctor.profile import APOSTROPHES, Profile
from lmtools.evaluate.doctor.texts import ENOUGH, name_profile, pairs, remedy_of
from lmtools.evaluate.doctor.trials import convert_options, describe
from lmtools.text import NORMALISERS
from lmtools.text.unify import ACCENTS, UNIFIERS, unifier
from lmtools.text.whisper import NAMES, removes_signs

# Shares of the characters: that is no accident, that spoils results
LARGE, MOST = 0.005, 0.05
BETTER = 0.95  # of the error rate: what a normaliser has to bring it below
MORE = 1.2  # times as many words as before, of a text that a normaliser leaves in words
SCRIPTS = {"CJK": "Han"}  # where the names of characters begin with another word
DIGITS = "digits"
# Kinds with thousands of letters, of which a text has some; this share is of another orthography
OPEN, MANY = ("Han letters", "Hangul letters"), 0.2
# What a model's own normaliser does to text and hypotheses, by form
LEARNT = {
    "apostrophes": "--apostrophe straight",
    "nfc": "--unicode-form NFC",
    "nfkc": "--unicode-form NFKC",
}
TOLD = 3  # characters a side
NUMBERS = 0.9  # of the words of a side that are ids


def is_part_of_words(character: str) -> bool:
    """Return whether a character is a letter, digit, accent or apostrophe."""
    return character in APOSTROPHES or unicodedata.category(character)[0] in "LNM"


def name_kind(character: str) -> str:
    """Return a character's kind: `digits`, `Cyrillic letters`, `letters with diacritics` .."""
    name = unicodedata.name(character, "UNNAMED")
    if character in APOSTROPHES:
        return "apostrophes"
    if name.startswith(("FULLWIDTH", "HALFWIDTH")):
        return f"{name.split()[0].lower()} characters"
    if unicodedata.category(character)[0] == "N":
        script, digit, _ = name.partition(" DIGIT ")
        return DIGITS if character.isascii() else f"{script.capitalize()} digits" if digit else name
    if ACCENTS.search(unicodedata.normalize("NFD", character)):
        return "letters with diacritics"
    script = name.split()[0]
    return f"{SCRIPTS.get(script, script.capitalize())} letters"


def characters(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find characters of the hypotheses that the other side never has, in any case, and kinds that
    only the references have; but for what forms of Unicode explain.
    """
    told: Counter = Counter()
    for hyps, other, remedy in pairs(inputs):
        ours, theirs = (side.unify(inputs.forms_of(other)).characters for side in (hyps, other))
        odd = missing_from(theirs, ours)
        # what the references lack, too, has its finding
        sides = [(hyps, Counter({c: n for c, n in odd.items() if c not in told}), other)]
        told |= odd
        if other.name == "references":
            sides.append((other, kinds_missing_from(ours, theirs), hyps))
        for side, odd, lacking in sides:
            part = odd.total() / max(1, side.characters.total())
            enough = lacking.lines >= ENOUGH and side is hyps
            if odd and (enough or part >= LARGE):
                first = side.first.get(most(odd, odd)[0], side.path)
                many = plural(odd.total(), "character")
                what = f"{many} ({max(part, 0.001):.1%}: {name_kinds(odd)})"
                cause = f"{what} that {name_profile(lacking)} not: {show_characters(odd)}"
                level = ERROR if part >= MOST else WARNING if part >= LARGE else HINT
                advice = advise(inputs, odd, lacking, other=other, remedy=remedy)
                yield Finding(level, first, cause, advice)


def missing_from(there: Counter, counts: Counter) -> Counter:
    """Return those of `counts` that are part of words and not `there` in any case."""
    folded = {c for letter in there for c in (letter.lower(), letter.upper(), letter)}
    if any(letter.isascii() and letter.isalpha() for letter in folded):
        folded.update(ascii_letters)
    odd = Counter({c: n for c, n in counts.items() if c not in folded and is_part_of_words(c)})
    kinds, ours, theirs = map(count_kinds, (odd, counts, there))
    open_kinds = {kind for kind in OPEN if theirs[kind] and kinds[kind] < MANY * ours[kind]}
    return Counter({c: n for c, n in odd.items() if name_kind(c) not in open_kinds})


def kinds_missing_from(there: Counter, counts: Counter) -> Counter:
    """Return those of `counts` that are of kinds of which `there` hardly has any."""
    ours, theirs = count_kinds(counts), count_kinds(there)
    odd = {k for k in ours if theirs[k] * ours.total() < 0.1 * ours[k] * theirs.total()}
    return Counter({c: n for c, n in counts.items() if is_part_of_words(c) and name_kind(c) in odd})


def count_kinds(counts: Counter) -> Counter:
    kinds = Counter()
    for character, count in counts.items():
        if is_part_of_words(character):
            kinds[name_kind(character)] += count
    return kinds


def name_kinds(odd: Counter) -> str:
    """Return the most frequent kinds, of several with their shares."""
    kinds = count_kinds(odd)
    return ", ".join(
        kind + f" {count / odd.total():.0%}" * (len(kinds) > 1)
        for kind, count in kinds.most_common(3)
        if count > 0.01 * odd.total()
    )


def show_characters(odd: Counter, limit: int = 5) -> str:
    """Return the most frequent characters with codes; invisible ones by name."""

    def show(character: str) -> str:
        alone = unicodedata.category(character)[0] in "LNPS"
        name = unicodedata.name(character, "").lower()
        return (
            f"{character} (U+{ord(character):04X})" if alone else f"U+{ord(character):04X} {name}"
        )

    return ", ".join(map(show, most(odd, odd)[:limit]))


def advise(
    inputs: DoctorInputs, odd: Counter, lacking: Profile, other: Profile, remedy: str
) -> str:
    """Return the remedy for odd characters: apostrophes and digits have their own."""
    if any(character in APOSTROPHES for character in odd):
        straight = other.name == "text" and any(map(lacking.characters.get, APOSTROPHES))
        option = f"--apostrophe {'straight' if straight else 'strip'}"
        return remedy_of(inputs, remedy, other, [option])
    if other.name == "text":
        return (
            "the model would not know them: write the hypotheses as the text is written, or add"
            " text that has them"
        )
    return spell_numbers(inputs, remedy) if count_kinds(odd)[DIGITS] else remedy


def spell_numbers(inputs: DoctorInputs, remedy: str) -> str:
    """Return the remedy for digits on one side, for counting alone: the best normaliser."""
    before, rates = inputs.trial.rate(inputs.remedies), {}
    _, words = inputs.trial.measure(str)
    letters = " ".join(ref for _, ref in inputs.trial.pairs)
    for name, normalise in NORMALISERS.items():
        try:
            if name in NAMES and removes_signs(letters, NAMES[name]):
                continue  # fewer errors, because different words become equal
            errors, length = inputs.trial.measure(normalise)
        except UserError:  # one that needs what is not installed
            continue
        # one that makes each letter a word counts other things
        if length <= MORE * words:
            rates[name] = 100 * errors / max(1, length)
    name = min(rates, key=rates.get)
    if rates[name] < BETTER * before and inputs.trial.pairs:
        title, start = inputs.trial.metric.title, inputs.trial.rate()
        return (
            f"count them alike, and leave the lists as they are: lmtools evaluate --normaliser"
            f" {name} ({title} {start:.1f} as written, {rates[name]:.1f} then)"
        )
    return f"{remedy}; numbers by lines `21 twenty one` of a file: lmtools convert --map-words"


def forms(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find the same words in other forms on both sides, with what each brings."""
    names = [name for name in inputs.remedies if name in UNIFIERS and name != "pieces"]
    if names:
        yield compare_references(inputs, names)
    if inputs.text_forms:
        yield compare_text(inputs, inputs.text, inputs.text_forms)


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
    remedy = f"write both alike: {convert_options(inputs.remedies)}"
    return Finding(level, place, f"{rates}{odd}", remedy)


def compare_text(inputs: DoctorInputs, text: Profile, names) -> Finding:
    """Return the finding on hypotheses, and text, that forms of Unicode bring together."""
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


def find_odd(hyps: Profile, other: Profile) -> tuple[str, str]:
    """Return the place of the most frequent odd character, and what both sides have alone."""
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
    sides = [side for side in (inputs.hyps, inputs.references, inputs.text) if side and side.lines]
    shares = [
        sum(n for word, n in side.words.items() if word.isdecimal()) / max(1, side.words.total())
        for side in sides
    ]
    for side, part in zip(sides, shares, strict=True):
        numbers = [word for word in side.words if word.isdecimal()]
        if part > NUMBERS and min(shares) < 0.1 and max(map(len, numbers)) > 2:
            cause = f"{name_profile(side)} numbers for words ({some(numbers, 3)}): ids of a table?"
            remedy = "name the table: lmtools convert --format kaldi-nbest:words=words.txt"
            yield Finding(ERROR, side.path, cause, remedy)
