"""How hypotheses, references and text of a language model are brought to one writing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, starmap

from lmtools.evaluate.corpus import References
from lmtools.evaluate.doctor.inputs import profile_rows, read_words, share
from lmtools.evaluate.doctor.profile import Profile
from lmtools.evaluate.doctor.trials import (
    BARE,
    PUNCTUATION,
    RARE,
    Trial,
    choose_remedies,
    convert_options,
    least_beside,
    name_both,
    name_settings,
    rewriting,
)
from lmtools.evaluate.edits import has_digits, strip_joints
from lmtools.evaluate.fit import OF_CHARACTERS
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.text.normaliser import CASES, parse_normaliser
from lmtools.text.scripts import find_spacing
from lmtools.text.unify import UNIFIERS
from lmtools.text.unknown import LOOKED_AT, MANY, conversion, explain
from lmtools.types import NBest

GAIN = 1.0  # of the error rate, percent, from which lists are rewritten
WRITING, MOST = 0.05, 0.5  # of the errors: of writing, of case and punctuation, that are told
SHOWN = 5  # lines of a file of words
ALIKE = "make both sides alike"


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
    rows = ((name, "", [("", one) for one in some]) for name, some in texts.items())
    hyps, refs, lines = starmap(profile_rows, rows)
    if normaliser == "none":
        return Writing("", "none", f"as it is (--normaliser none){letters}", metric)
    pairs = [(n.hyps[0].text, n.ref) for n in nbests if n.hyps and n.ref is not None]
    trial = Trial(pairs, others=[texts["text"], *[texts["hypotheses"]] * (not pairs)])
    both = name_both(trial.casing)
    singly = convert_options([trial.casing, PUNCTUATION]).removeprefix("lmtools convert ")
    names = list_rewritings(trial, hyps, refs) if refs.lines else []
    lists = convert_options(names).removeprefix("lmtools convert").strip()
    lists = lists.replace(singly, f"--normaliser {normaliser or both}")
    if lm:
        same = explain_unknown(nbests, names, lm)
        lists = f"{lists} {same.removeprefix('--normaliser none ' * (both in lists))}".strip()
    if lines.lines:
        normaliser = normaliser or name_normaliser(hyps, lines, names, trial.casing)
    if lines.lines and bare:
        normaliser = replace(parse_normaliser(normaliser or "none"), letters="split").spec
    told = describe(side for side in (hyps, refs, lines) if side.lines)
    if lists:
        told += f"; lists and references are rewritten by {lists}"
    if lines.lines and normaliser:
        told += f"; the LM reads text and hypotheses by --normaliser {normaliser}"
    return Writing(lists, normaliser, told + letters, metric)


def list_rewritings(trial: Trial, hyps: Profile, refs: Profile) -> list[str]:
    """Return what is rewritten: no word becomes another, and errors fall, as users count them."""
    names = choose_remedies(trial, hyps, refs)
    names = [name for name in names if name not in UNIFIERS or not UNIFIERS[name].folds]
    return names if trial.rate() - trial.rate(names) >= GAIN else []


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


def name_normaliser(hyps: Profile, text: Profile, names: Sequence[str], casing: str) -> str | None:
    """Return the normaliser by which a model reads lists, rewritten by `names`, and text alike."""
    case, both = CASES[casing].case if casing in names else hyps.case, name_both(casing)
    cased = bool(case and text.case and case != text.case)
    odd = [text.punctuation() if PUNCTUATION in names else text.foreign_punctuation(hyps)]
    odd += [] if PUNCTUATION in names else [hyps.foreign_punctuation(text)]
    rates = (marks.total() / side.spaces for marks, side in zip(odd, (text, hyps), strict=False))
    settings = ["punctuation=strip"] * (max(rates) >= RARE and not cased)
    settings += ["apostrophe=strip"] * (BARE in names)
    if not settings:
        return both if cased else None
    both = both if cased else "none"
    return f"{both}{',' if ':' in both else ':'}{','.join(settings)}"


def describe(sides: Iterable[Profile]) -> str:
    """Return how sides are written: `upper case (hypotheses, references), lower case (text)`."""
    names: dict[str, list[str]] = {}
    for side in sides:
        marks = side.punctuation().total() > RARE * side.spaces
        what = [f"{side.case} case" if side.case else "no case"] + ["punctuation"] * marks
        names.setdefault(" and ".join(what), []).append(side.name)
    return ", ".join(f"{what} ({', '.join(some)})" for what, some in names.items())


def doubt_writing(
    pairs: Sequence[tuple[str, str]], place, metric: str = "wer", verb: str = "convert"
) -> Iterator[str]:
    """Yield a warning about `place` where case, punctuation and forms of Unicode make MOST errors
    of (hypothesis, reference) pairs, or writing alone does (for `evaluate`, which counts it anyway,
    MOST), with what makes both sides alike.
    """
    if not isinstance(METRICS[metric], ErrorRate) or not pairs:
        return
    trial = Trial(pairs)
    trial.metric, names = METRICS[metric], choose_forms_beside_writing(trial)
    change = rewriting(names)
    sides = ({str(row): change(pair[side]) for row, pair in enumerate(pairs)} for side in (1, 0))
    spelling = WrittenErrors(*sides, metric)
    if names:
        before = sum(METRICS[metric].align(ref, hyp).counts.errors for hyp, ref in pairs)
        after, length = spelling.errors - spelling.writing, max(1, spelling.length)
        what = f"case, punctuation or form{', or writing' * bool(spelling.writing)}"
        rates = f"{100 * before / length:.2f} as written, {100 * after / length:.2f} without"
        told = (
            f"{share(before - after, before)} errors are {what} ({METRICS[metric].title} {rates})"
        )
        remedy = convert_options(names) if verb == "convert" else evaluate_options(names)
        more = spelling.writing >= WRITING * before and f" {spelling.option}"
        yield f"warning: {place}: {told}; {ALIKE}: {remedy}{more or ''}"
    elif spelling.doubtful(MOST if verb == "evaluate" else WRITING):
        yield f"warning: {place}: {spelling.cause}; {ALIKE}: lmtools {verb} {spelling.option}"


def choose_forms_beside_writing(trial: Trial) -> list[str]:
    """Return the least rewritings without which MOST errors would stay, if any are, where equal
    letters are no error.
    """

    def errors(names: Iterable[str]) -> int:
        change, align = rewriting(names), trial.metric.align
        pairs = ((change(hyp), change(ref)) for hyp, ref in trial.pairs)
        pairs = ((h, r) for h, r in pairs if strip_joints(h) != strip_joints(r))
        return sum(align(ref, hyp).counts.errors for hyp, ref in pairs)

    names = [trial.casing, PUNCTUATION, *(name for name in UNIFIERS if not UNIFIERS[name].folds)]
    before = trial.errors()
    if before - errors(names) <= MOST * before:
        return []
    return least_beside(trial, (), names, errors)


class WrittenErrors:
    """Errors of hypotheses that are writing alone, and the words that make both sides alike:
    spellings of one side that the other has fewer times than they were errors.
    """

    def __init__(self, refs: Mapping[str, str], hyps: Mapping[str, str], metric: str = "wer"):
        known = References(refs, metric)
        total = known.evaluate(hyps).total
        self.errors, self.length = int(total[:3].sum()), int(total[3])
        self.writing, found = known.writing(hyps)
        words = [Counter(" ".join(side.values()).split()) for side in (refs, hyps)]
        self.lines: dict[str, str] = {}
        for (ref, hyp), times in found.most_common():
            for old, new, others in ((hyp, ref, words[0]), (ref, hyp, words[1])):
                if old and new and " " not in old and others[old] < times:
                    self.lines.setdefault(old, new)
                    break

    def doubtful(self, least: float = WRITING) -> bool:
        return self.writing > 0 and self.writing >= least * self.errors

    @property
    def cause(self) -> str:
        what = "errors are writing alone (blanks, apostrophes, hyphens, digits)"
        return f"{share(self.writing, self.errors)} {what}"

    @property
    def option(self) -> str:
        """The option that makes words alike; of nothing but numbers, what counts them alike."""
        words = [f"`{old} {new}`" for old, new in self.lines.items() if not has_digits(old, new)]
        if self.lines and not words:
            return "--normaliser whisper-english"
        shown = f"{', '.join(words[:SHOWN]) or '`mr mister`'}{' ..' * (len(words) > SHOWN)}"
        return f"--map-words F, F of lines {shown}"


def evaluate_options(names: Iterable[str]) -> str:
    """Return the command of `convert_options` for texts that are only counted."""
    settings = name_settings(names)
    forms = ",".join(name for name in UNIFIERS if name in names)
    options = f" --normaliser none:{settings}" * bool(settings) + f" --unify {forms}" * bool(forms)
    return f"lmtools evaluate{options}"
