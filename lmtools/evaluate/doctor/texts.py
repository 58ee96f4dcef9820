"""Checks of texts against each other: case, punctuation, marks, vocabulary; and of how translations
are written: tokens instead of text, pieces instead of words, a case right inside sentences only.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from lmtools.evaluate.doctor.inputs import (
    ERROR,
    HINT,
    WARNING,
    DoctorInputs,
    Finding,
    fold,
    grade_rate,
    is_huggingface,
    most,
    plural,
    share,
    some,
)
from lmtools.evaluate.doctor.profile import SIGNS, Profile
from lmtools.evaluate.doctor.trials import (
    MARKS,
    PUNCTUATION,
    RARE,
    convert_options,
    name_both,
    name_settings,
    rewriting,
)
from lmtools.evaluate.doctor.writing import ALIKE, WrittenErrors, choose_forms_beside_writing
from lmtools.formats.edits import capitalise
from lmtools.text.marks import drop_marks, find_marks
from lmtools.text.normaliser import CASES, choose_case
from lmtools.text.scripts import split_units
from lmtools.text.unknown import conversion, explain

LONG = 8  # words from which a sentence is unlikely to be said twice
LEAK = 0.2  # share of long references in the text that makes figures worthless
ENOUGH = 20  # lines from which it means something that they lack a character
MANY = 0.02  # marks a word that spoil results
# Shares of unknown words: that are told, that are too many of the references, and of all
UNKNOWN, MISSED, MOST = 0.02, 0.1, 0.5
JOIN = "join them: lmtools convert --unify pieces"
REMEDIES = {
    ("hypotheses", "pieces"): JOIN,
    ("references", "pieces"): JOIN,
    ("text", "pieces"): "join them: utils/unify.py pieces < cut > joined",
    "hypotheses": "lmtools convert --detokenise LANG",
    "references": "lmtools convert --detokenise-ref LANG",
    "text": "utils/detokenise.py LANG < tokenised > detokenised",
}


def pairs(inputs: DoctorInputs) -> Iterator[tuple[Profile, Profile, str]]:
    """Yield profiles that must be written alike, and the remedy."""
    if inputs.references.lines and inputs.hyps.lines:
        yield (
            inputs.hyps,
            inputs.references,
            "metrics compare words as they are: write both alike",
        )
    if inputs.text and inputs.model_hyps.lines:
        yield inputs.model_hyps, inputs.text, "write both alike: add"


def remedy_of(inputs: DoctorInputs, remedy: str, other: Profile, options: Sequence[str]) -> str:
    """Return the remedy of a pair with options that bring it about, as far as they help."""
    if other.name == "text":
        # whose rules of case go with no punctuation, as models are best learnt
        cases = [name_both(option) for option in options if option in CASES]
        name = cases[0] if cases else f"none:{name_settings(options)}"
        return f"{remedy} --normaliser {name} to lmtools rescue, ngram or subword"
    if useful := [option for option in options if inputs.helps(option)]:
        whole = set(useful) <= set(inputs.remedies)
        return f"{remedy}, {convert_options(inputs.remedies if whole else useful)}"
    before, after = inputs.trial.rate(), inputs.trial.rate(options)
    title = inputs.trial.metric.title
    return f"{remedy} ({' '.join(options)} does not do it: {title} {before:.1f}, then {after:.1f})"


def name_profile(profile: Profile) -> str:
    """Return `the hypotheses have` or `the text in F has`."""
    if profile.name == "hypotheses":
        return "the hypotheses have"
    return f"the {profile.name} in {profile.path} {'has' if profile.name == 'text' else 'have'}"


def writing(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find case and punctuation of one side that the other has not, in one finding a pair: what
    sets the hypotheses apart from references and text alike is said of the references.
    """
    told: set[tuple[str, str | None]] = set()
    for hyps, other, remedy in pairs(inputs):
        ours, theirs = (side.unify(inputs.forms_of(other)) for side in (hyps, other))
        odd = {"hypotheses": ours.foreign_punctuation(theirs)}
        odd[other.name] = theirs.foreign_punctuation(ours)
        cased = bool(hyps.case and other.case and hyps.case != other.case)
        more = max((hyps, other), key=lambda side: odd[side.name].total() / side.spaces)
        level = grade_rate(odd[more.name].total() / more.spaces, RARE, MANY)
        differences = [("case", other.case)] * cased
        differences += [("marks", "text" if more is other else "hyps")] * bool(level)
        if not told.issuperset(differences):
            free = ours.punctuates(theirs) and theirs.punctuates(ours)
            level = ERROR if cased else HINT if free else level
            sides = (other, hyps) if cased or more is other else (hyps, other)
            cause = ", ".join(describe_writing(side, odd[side.name], cased) for side in sides)
            # its first place, unless a form of Unicode brought it
            first = [more.first.get(c, more.path) for c in most(*[odd[more.name]] * 2)]
            place = where_cased(other, hyps) if cased else first[0]
            casing = inputs.trial.casing
            if other.name == "text":
                casing = choose_case([hyps.words, other.words])
            options = [casing] * cased + [PUNCTUATION] * (bool(differences[cased:]) and not free)
            advice = "fine where both are free to punctuate, as translations are"
            if options:
                advice = remedy_of(inputs, remedy, other, options)
                if other.name == "references" and not any(map(inputs.helps, options)):
                    level = WARNING  # as a name in Latin letters
            yield Finding(level, place, cause, advice)
        told.update(differences)


def describe_writing(side: Profile, odd: Counter, cased: bool) -> str:
    """Return case and punctuation of a side in words, as far as the other has them not."""
    parts = [f"{side.case} case"] * cased
    if odd.total() > RARE * side.spaces:
        shown = " ".join(most(odd, odd)[:10])
        parts.append(f"{shown} ({odd.total():,} in {side.spaces:,} words)")
    return f"{name_profile(side)} {' and '.join(parts) or 'hardly any'}"


def where_cased(profile: Profile, other: Profile) -> str:
    """Return the line with the first letter of a case that the other side hardly has."""
    odd = {"lower": str.isupper, "upper": str.islower}.get(other.case, str.isalpha)
    return next((place for letter, place in profile.first.items() if odd(letter)), profile.path)


def marks(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find marks of noise, silence, music, unknown words; not brackets that references have."""
    counts, first, nothing_else = Counter(), None, 0
    for nbest in inputs.nbests:
        for hyp in nbest.hyps:
            odd = [m for m in find_marks(hyp.text) if m[0] not in inputs.references.characters]
            if odd:
                counts.update(odd)
                first = first or nbest.utt
                nothing_else += not drop_marks(hyp.text)
    if counts:
        alone = (
            f", and {plural(nothing_else, 'hypothesis')} hold nothing else" if nothing_else else ""
        )
        gain = inputs.trial.rate() - inputs.trial.rate([MARKS])
        remedy = "they count as words: " + (
            "--drop-marks makes more errors here; name words to drop: lmtools convert --drop-words"
            if gain < 0
            else f"lmtools convert {MARKS} (or --drop-words FILE), unless references and text have"
            " them too"
        )
        cause = (
            f"{plural(counts.total(), 'word')} of the hypotheses are marks:"
            f" {some(most(counts, counts))} (first in {first!r}){alone}"
        )
        yield Finding(grade_rate(gain, 1, 1) or HINT, inputs.places[first], cause, remedy)


def first_word(inputs: DoctorInputs) -> Iterator[Finding]:
    eaten = [
        nbest
        for nbest in inputs.nbests
        if nbest.hyps and all(hyp.text.split()[:1] == [nbest.utt] for hyp in nbest.hyps)
    ]
    if eaten:
        cause = f"the hypotheses of {plural(eaten, 'utterance')} begin with the utterance id"
        yield Finding(ERROR, inputs.places[eaten[0].utt], cause, "take it out of their text")


def vocabulary(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find words that the model or its text lacks, without those that other findings explain."""
    if inputs.lm and inputs.known is None and is_huggingface(inputs.lm):
        cause = "the vocabulary of a Hugging Face model is not looked into"
        yield Finding(HINT, inputs.lm, cause, "lmtools score says how many tokens are unknown")
    text = inputs.text if inputs.text and inputs.text.lines else None
    known = inputs.known or (text and text.words.__contains__)
    if not known:
        return
    told = bool(inputs.text_forms) or any(writing(inputs))
    folded = {fold(word) for word in text.words} if told and text else ()
    unknown, shares, parts = Counter(), {}, []
    for side in (inputs.model_hyps, inputs.model_references):
        if side.lines:
            odd = {w: n for w, n in side.words.items() if not known(w) and fold(w) not in folded}
            count, total = sum(odd.values()), max(1, side.words.total())
            shares[side.name] = count / total
            if count > UNKNOWN * total:
                unknown.update(odd)
                parts.append(f"{share(count, total)} words of the {side.name}")
    if not parts:
        return
    why, option = explain(unknown, known)
    # words that only wrong hypotheses have are not missed
    missed = shares.get("references", max(shares.values())) >= MISSED
    level = ERROR if missed or option or max(shares.values()) >= MOST else HINT
    where = inputs.lm if inputs.known else text.path
    cause = f"{' and '.join(parts)} are not in {where}: {some(most(unknown, unknown))}"
    if option and not told:
        yield Finding(level, inputs.nbest, f"{cause} ({why})", conversion(option))
    elif not option:
        yield Finding(level, inputs.nbest, cause, "give text of the same kind, written alike")


def unseen(inputs: DoctorInputs) -> Iterator[Finding]:
    """Yield findings on the unknown words of a language model that lacks some."""
    words = {*inputs.model_hyps.words, *inputs.model_references.words}
    if inputs.notes and not all(map(inputs.known, words)):
        yield from (Finding(HINT, *note) for note in inputs.notes)


def leak(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find long references that stand in the language-model text word for word."""
    if inputs.text:
        long = {
            utt: line
            for utt, words in inputs.refs.items()
            if len(split_units(line := inputs.normalise(words))) >= LONG
        }
        copied = [utt for utt, line in long.items() if line in inputs.text.whole]
        if len(copied) > 0.02 * len(long):
            cause = (
                f"{share(len(copied), len(long))} references of {LONG} words or more stand in"
                f" {inputs.text.path}"
            )
            lists = f"--text {inputs.text.path} --ref {inputs.ref} --leave-out-overlap --out NEW"
            remedy = f"the LM has seen them: lmtools corpus {lists} takes these lines out"
            level = ERROR if len(copied) >= LEAK * len(long) else HINT
            yield Finding(level, inputs.ref_places[copied[0]], cause, remedy)


def tokenisation(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find tokens or pieces on one side; on both, tokens are a hint, pieces an error."""
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
    """Return whether the profile could show the sign: spaces need commas and full stops."""
    return (
        name != "spaces"
        or profile.characters[","] + profile.characters["."] > SIGNS[name].rate * profile.spaces
    )


def finding(level: str, profile: Profile, name: str, rest: str) -> Finding:
    count = f"{profile.signs[name]:,} in {profile.spaces:,} words"
    remedy = REMEDIES.get((profile.name, name)) or REMEDIES[profile.name]
    return Finding(
        level,
        profile.first[name],
        f"{name_profile(profile)} {SIGNS[name].label} ({count}){rest}",
        remedy,
    )


def spelling(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find errors of writing alone, once case, punctuation and forms are made alike."""
    change = rewriting([*inputs.remedies, *choose_forms_beside_writing(inputs.trial)])
    hyps = {n.utt: n.hyps[0].text for n in inputs.nbests if n.hyps and n.utt in inputs.refs}
    if not hyps or any(tokenisation(inputs)):
        return
    hyps, refs = ({u: change(side[u]) for u in hyps} for side in (hyps, inputs.refs))
    spelling = WrittenErrors(refs, hyps, inputs.trial.metric.title.lower())
    if spelling.doubtful() and "whisper" not in spelling.option:  # digits have their own finding
        yield Finding(
            WARNING, inputs.nbest, spelling.cause, f"{ALIKE}: lmtools convert {spelling.option}"
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
    """Return the share of upper-case first letters among first letters with case."""
    cases = {True: 0, False: 0}
    for word, count in profile.starts.items():
        letter = next(filter(str.isalnum, word), "")
        if letter.isupper() or letter.islower():
            cases[letter.isupper()] += count
    return cases[True] / max(1, sum(cases.values()))
