"""How hypotheses, references and text of a language model are brought to one writing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lmtools.evaluate.doctor.inputs import profile_rows, read_words
from lmtools.evaluate.doctor.profile import Profile
from lmtools.evaluate.doctor.trials import (
    BARE,
    LOWER,
    PUNCTUATION,
    RARE,
    Trial,
    choose_remedies,
    convert_options,
    rewriting,
)
from lmtools.evaluate.fit import OF_CHARACTERS
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.scripts import find_spacing
from lmtools.text.unify import UNIFIERS
from lmtools.text.unknown import LOOKED_AT, MANY, conversion, explain
from lmtools.types import NBest

BOTH = "librispeech"  # the normaliser that lowers and strips
SINGLY = "--normaliser none --case lower --punctuation strip"
GAIN = 1.0  # of the error rate, percent, from which lists are rewritten


@dataclass(frozen=True)
class Writing:
    """Options of lmtools convert for lists ('': none), the text's normaliser, what to tell, the
    metric that fits.
    """

    lists: str
    text: str | None
    told: str
    metric: str = "wer"


def choose_writing(
    nbests: Sequence[NBest],
    text: Iterable[str] = (),
    lm: str | None = None,
    normaliser: str | None = None,
) -> Writing:
    """Return what brings hypotheses and references together, and both with the first lines of a
    `text` or the words of `lm`; by `normaliser` if the user names one.
    """
    texts = {
        "hypotheses": [hyp.text for n in nbests for hyp in n.hyps],
        "references": [n.ref for n in nbests if n.ref is not None],
        "text": [*islice(text, LOOKED_AT)],
    }
    bare = next((side.language for side in map(find_spacing, texts.values()) if side.bare), None)
    metric, letters = describe_letters(bare)
    sides = (profile_rows(name, "", [("", one) for one in some]) for name, some in texts.items())
    hyps, refs, lines = sides
    if normaliser == "none":
        return Writing("", "none", f"as it is (--normaliser none){letters}", metric)
    trial = Trial([(n.hyps[0].text, n.ref) for n in nbests if n.hyps and n.ref is not None])
    names = choose_remedies(trial, hyps, refs) if refs.lines else []
    names = [name for name in names if name not in UNIFIERS or not UNIFIERS[name].folds]
    names = names if trial.rate() - trial.rate(names) >= GAIN else []  # else as users count it
    lists = convert_options(names).removeprefix("lmtools convert").strip()
    lists = lists.replace(SINGLY, f"--normaliser {normaliser or BOTH}")
    if lm:
        option = explain_unknown(nbests, names, lm)
        same = option.removeprefix("--normaliser none ") if BOTH in lists else option
        lists = f"{lists} {same}".strip()
    if lines.lines and not normaliser:
        normaliser = name_normaliser(hyps, lines, names)
    if lines.lines and bare:
        normaliser = replace(parse_normaliser(normaliser or "none"), letters="split").spec
    told = describe(side for side in (hyps, refs, lines) if side.lines)
    if lists:
        told += f"; lists and references are rewritten by {lists}"
    if lines.lines and normaliser:
        told += f"; the LM reads text and hypotheses by --normaliser {normaliser}"
    return Writing(lists, normaliser, told + letters, metric)


def describe_letters(language: str | None) -> tuple[str, str]:
    """Return the metric that fits a language without blanks between words, if any, and why."""
    if not language:
        return "wer", ""
    told = f"; {language} without blanks between words: by letters, and CER where no --metric is"
    return OF_CHARACTERS[1], f"{told} given"


def explain_unknown(nbests: Sequence[NBest], names: Sequence[str], lm: str) -> str:
    """Return options of lmtools convert by which a model knows lists; '' if none helps."""
    view, change = read_words(lm), rewriting(names)
    if view.known is None:
        return ""
    texts = (view.normalise(change(hyp.text)) for nbest in nbests for hyp in nbest.hyps)
    words = Counter(word for text in islice(texts, LOOKED_AT) for word in view.split(text))
    unknown = Counter({word: n for word, n in words.items() if not view.known(word)})
    option = explain(unknown, view.known)[1] if unknown.total() > MANY * words.total() else ""
    return conversion(option).removeprefix("lmtools convert ") if option else ""


def name_normaliser(hyps: Profile, text: Profile, names: Sequence[str]) -> str | None:
    """Return the normaliser by which a model reads lists, rewritten by `names`, and text alike."""
    case = "lower" if LOWER in names else hyps.case
    cased = bool(case and text.case and case != text.case)
    odd = [text.punctuation() if PUNCTUATION in names else text.foreign_punctuation(hyps)]
    odd += [] if PUNCTUATION in names else [hyps.foreign_punctuation(text)]
    rates = (marks.total() / side.spaces for marks, side in zip(odd, (text, hyps), strict=False))
    settings = ["punctuation=strip"] * (max(rates) >= RARE and not cased)
    settings += ["apostrophe=strip"] * (BARE in names)
    if not settings:
        return BOTH if cased else None
    return f"{BOTH if cased else 'none'}:{','.join(settings)}"


def describe(sides: Iterable[Profile]) -> str:
    """Return how sides are written: `upper case (hypotheses, references), lower case (text)`."""
    names: dict[str, list[str]] = {}
    for side in sides:
        marks = side.punctuation().total() > RARE * side.spaces
        what = [f"{side.case} case" if side.case else "no case"] + ["punctuation"] * marks
        names.setdefault(" and ".join(what), []).append(side.name)
    return ", ".join(f"{what} ({', '.join(some)})" for what, some in names.items())
