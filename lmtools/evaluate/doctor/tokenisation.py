"""Checks of how translations are written: tokens instead of text, pieces instead of words, a case
that is right inside sentences only.
"""

from collections.abc import Iterator

from lmtools.evaluate.doctor.finding import ERROR, HINT, Finding
from lmtools.evaluate.doctor.inputs import DoctorInputs
from lmtools.evaluate.doctor.profile import Profile
from lmtools.evaluate.doctor.signs import SIGNS
from lmtools.evaluate.doctor.texts import ENOUGH, name_profile, pairs
from lmtools.formats.edits import capitalise

JOIN = "join them: lmtools convert --unify pieces"
REMEDIES = {
    ("hypotheses", "pieces"): JOIN,
    ("references", "pieces"): JOIN,
    ("text", "pieces"): "join them: utils/unify.py pieces < cut > joined",
    "hypotheses": "lmtools convert --detokenise LANG",
    "references": "lmtools convert --detokenise-ref LANG",
    "text": "utils/detokenise.py LANG < tokenised > detokenised",
}


def tokenisation(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find tokens or pieces on one side only; on both, tokens are a hint, and pieces an error,
    since metrics would count them.
    """
    reported = set()
    for hyps, other, _ in pairs(inputs):
        for more, less in ((hyps, other), (other, hyps)):
            for name in SIGNS:
                if (
                    shows(more, name)
                    and could_show(less, name)
                    and not shows(less, name)
                    and (more.name, name) not in reported
                ):
                    reported.add((more.name, name))
                    yield finding(ERROR, more, name, f", {name_profile(less)} hardly any")
    for profile in (inputs.hyps, inputs.references):
        for name in SIGNS:
            if shows(profile, name) and (profile.name, name) not in reported:
                level = ERROR if name == "pieces" else HINT
                yield finding(
                    level,
                    profile,
                    name,
                    ", and sacreBLEU and most language models want text as people write it",
                )


def shows(profile: Profile, name: str) -> bool:
    """Return whether a sign is more frequent than clean text may have it."""
    return profile.signs[name] > SIGNS[name].rate * profile.spaces


def could_show(profile: Profile, name: str) -> bool:
    """Return whether the profile would show the sign if it were tokenised: text without commas and
    full stops has no spaces before them.
    """
    return (
        name != "spaces"
        or profile.characters[","] + profile.characters["."] > SIGNS[name].rate * profile.spaces
    )


def finding(level: str, profile: Profile, name: str, rest: str) -> Finding:
    """Return the finding on one sign."""
    count = f"{profile.signs[name]:,} in {profile.spaces:,} words"
    remedy = REMEDIES.get((profile.name, name)) or REMEDIES[profile.name]
    return Finding(
        level,
        profile.first[name],
        f"{name_profile(profile)} {SIGNS[name].label} ({count}){rest}",
        remedy,
    )


def truecasing(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find sentences that begin in lower case on one side, where both sides have capitals."""
    for hyps, other, remedy in pairs(inputs):
        if hyps.case == other.case == "mixed" and min(hyps.lines, other.lines) >= ENOUGH:
            lower, upper = sorted((hyps, other), key=begins_upper)
            low, high = begins_upper(lower), begins_upper(upper)
            if low < 0.5 and high > 0.8:
                cause = (
                    f"{name_profile(lower)} {1 - low:.0%} of first words in lower case,"
                    f" {name_profile(upper)} {1 - high:.0%}: truecased?"
                )
                rate = inputs.trial.rate_of
                better = not inputs.trial.pairs or rate(capitalise, str) < rate(str)
                if lower is hyps and (better or other.name == "text"):
                    remedy = "lmtools convert --case sentence"
                elif other.name == "text":
                    remedy += " --normaliser librispeech to lmtools rescue, ngram or subword"
                yield Finding(ERROR, lower.path, cause, remedy)


def begins_upper(profile: Profile) -> float:
    """Return the share of the first words that begin with an upper-case letter, among those that
    begin with a letter with case.
    """
    cases = {True: 0, False: 0}
    for word, count in profile.starts.items():
        letter = next(filter(str.isalnum, word), "")
        if letter.isupper() or letter.islower():
            cases[letter.isupper()] += count
    return cases[True] / max(1, sum(cases.values()))
