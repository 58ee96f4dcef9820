"""Inputs of the doctor: lists, references, language-model text and vocabulary, read as far as they
can be read.

What checks find are Findings.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.specs import find_model
from lmtools.evaluate.doctor.profile import Profile
from lmtools.evaluate.doctor.trials import MARKS, Trial, choose_forms, choose_remedies
from lmtools.formats import read
from lmtools.formats.lists import pair_ids
from lmtools.formats.texts import read_texts
from lmtools.ngram.model import SUBWORD, ModelNote, NgramModel, is_ngram
from lmtools.text.blocks import read_text
from lmtools.text.marks import drop_marks
from lmtools.text.normaliser import NORMALISERS
from lmtools.text.scripts import split_letters, split_units
from lmtools.text.subword import load_subword
from lmtools.text.subword.base import DESCRIPTION
from lmtools.text.unify import UNIFIERS, unifier
from lmtools.types import NBest

ERROR, WARNING, HINT = "error", "warning", "hint"
LINES = 2_000_000  # of language-model text, at most
WORDS = 500_000  # of which it is remembered whether they are wanted
UNIFY = unifier(UNIFIERS)
NFKC = "nfkc"  # merges signs that BLEU's references keep apart, so that translations keep them
FEATURE = re.compile(r"[A-Z][A-Za-z]*\d+(_\d+)?")  # scores of Moses and Marian: LM0, TM0_2, F0


@dataclass(frozen=True)
class Finding:
    """An `error` spoils results, a `warning` changes what they mean, a `hint` may be right; `place`
    is `path` or `path:line`.
    """

    level: str
    place: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place}: {self.cause}; {self.remedy}"


def share(part: float, whole: float) -> str:
    """Return a share in words: `3 of 200 (1.5%)`."""
    return f"{part:,} of {whole:,} ({100 * part / max(whole, 1):.1f}%)"


def some(names: Iterable[str], limit: int = 5) -> str:
    names = list(names)
    return ", ".join(repr(name) for name in names[:limit]) + (" ..." if len(names) > limit else "")


def grade_rate(rate: float, hint: float, error: float) -> str | None:
    """Return the level of a rate, None below both bounds."""
    return ERROR if rate >= error else HINT if rate >= hint else None


def plural(items: Collection | int, noun: str) -> str:
    """Return a count of nouns: `1 list`, `2 lists`, `3 hypotheses`."""
    count = items if isinstance(items, int) else len(items)
    many = noun.removesuffix("is") + "es" if noun.endswith("is") else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"


@dataclass
class DoctorInputs:
    """Everything there is to look at; None or empty is missing, and `problems` says why."""

    nbest: str
    nbests: Sequence[NBest]
    places: Mapping[str, str]  # where each utterance stands
    refs: Mapping[str, str]
    ref: str  # where they are from
    ref_places: Mapping[str, str]
    hyps: Profile  # as they are written; so are the references
    references: Profile
    model_hyps: Profile  # as the language model sees them; so are the next two
    model_references: Profile
    text: Profile | None
    normalise: Callable[[str], str]
    lm: str | None
    known: Callable[[str], bool] | None  # whether the language model knows a word
    notes: Sequence[ModelNote]  # what is unusual about the language model's unknown words
    problems: Sequence[UserError]
    trial: Trial  # of the first hypotheses
    remedies: Sequence[str]  # the rewritings that bring hypotheses and references together
    text_forms: Sequence[str]  # the forms of Unicode that bring hypotheses and text together

    def forms_of(self, other: Profile) -> Sequence[str]:
        """Return the remedies that bring hypotheses together with references, or with text."""
        return self.text_forms if other.name == "text" else self.remedies

    def helps(self, option: str) -> bool:
        """Return whether a rewriting, beside the others, brings both sides nearer; True untried."""
        others = [name for name in self.remedies if name != option]
        errors = self.trial.errors
        return not self.trial.pairs or errors([*others, option]) < errors(others)


def join_references(texts: Mapping[str, str], nbests) -> Mapping[str, str]:
    """Return references under the lists' ids, where one rule joins all."""
    found = pair_ids([nbest.utt for nbest in nbests], texts)
    if not found or not found[0]:
        return texts
    joined = set(found[1].values())
    rest = {utt: text for utt, text in texts.items() if utt not in joined}
    return {utt: texts[other] for utt, other in found[1].items()} | rest


def read_inputs(
    nbest: str,
    form: str | None = None,
    text: str | None = None,
    ref: str | None = None,
    lm: str | None = None,
) -> DoctorInputs:
    """Read what there is; a file that cannot be read becomes a problem."""
    problems: list[UserError] = []
    nbests = attempt(problems, (), lambda: read(nbest, form))
    places = locate_utterances(nbest, nbests)
    refs, ref_places = {item.utt: item.ref for item in nbests if item.ref is not None}, places
    if ref:
        texts = attempt(problems, None, lambda: read_texts(ref, "lmtools convert --ref-lines"))
        texts = texts and join_references(texts, nbests)
        refs, ref_places = read_leniently(ref)
        if texts is not None:
            refs, ref_places = texts, {utt: ref_places.get(utt, ref) for utt in texts}
    model = attempt(problems, ModelWords(), lambda: read_words(lm)) if lm else ModelWords()
    pairs = [(n.hyps[0].text, refs[n.utt]) for n in nbests if n.hyps and n.utt in refs]
    trial = Trial(pairs)
    profiles = profile_sides(
        ("hypotheses", nbest, [(places[n.utt], hyp.text) for n in nbests for hyp in n.hyps]),
        ("references", ref or nbest, [(ref_places[utt], words) for utt, words in refs.items()]),
        model,
        # marks that have a finding of their own are no punctuation and no digits
        drop_marks if trial.errors([MARKS]) < trial.errors() else str,
    )
    hyps, references, model_hyps, model_references = profiles
    wanted = model_hyps.words.keys() | model_references.words.keys()
    lines = {model.normalise(words) for words in refs.values()}
    seen = attempt(problems, None, lambda: text and profile_text(text, model, wanted, lines))
    forms = choose_forms(model_hyps.words, seen.words) if seen else []
    remedies = choose_remedies(trial, hyps, references)
    if translate(nbests):
        remedies, forms = ([name for name in some if name != NFKC] for some in (remedies, forms))
    trials = trial, remedies, forms
    lists = nbest, nbests, places, refs, ref or nbest, ref_places
    model_view = model.normalise, lm, model.known, model.notes
    return DoctorInputs(*lists, *profiles, seen, *model_view, problems, *trials)


def translate(nbests: Sequence[NBest]) -> bool:
    """Return whether lists are of a translator, by their source or the names of its scores."""
    first = next((nbest for nbest in nbests if nbest.hyps), None)
    names = first.hyps[0].scores if first else ()
    return bool(first) and ("source" in first.extra or any(map(FEATURE.fullmatch, names)))


def profile_sides(
    hyps: tuple, refs: tuple, model: "ModelWords", bare: Callable[[str], str]
) -> list[Profile]:
    """Return profiles of hypotheses and references as written, then as the model sees them."""
    written = [profile_rows(name, path, rows, bare=bare) for name, path, rows in (hyps, refs)]
    return written + [
        profile_rows(name, path, [(place, model.normalise(words)) for place, words in rows], model)
        for name, path, rows in (hyps, refs)
    ]


def attempt(problems: list[UserError], otherwise, read: Callable):
    """Return the result of `read`; on a UserError add it to `problems` and return `otherwise`."""
    try:
        return read()
    except UserError as error:
        problems.append(error)
        return otherwise


def single(text: str) -> str:
    """Return `text` with single spaces between words and none around."""
    return " ".join(text.split())


@dataclass(frozen=True)
class ModelWords:
    """View of text by an LM: its normaliser, split, known words (None: unknown), and notes."""

    normalise: Callable[[str], str] = split_letters
    split: Callable[[str], list[str]] = split_units
    known: Callable[[str], bool] | None = None
    notes: Sequence[ModelNote] = ()


def profile_rows(
    name: str,
    path: str,
    rows: Iterable[tuple[str, str]],
    model: ModelWords | None = None,
    bare: Callable[[str], str] = str,
) -> Profile:
    """Return the profile of (place, text) pairs: words of `model`, characters `bare` leaves."""
    profile = Profile(name, path, split=(model or ModelWords()).split)
    for place, text in rows:
        profile.add(place, text, bare=bare)
    return profile


def locate_utterances(path: str, nbests: Sequence[NBest]) -> dict[str, str]:
    """Return `path:line` of each utterance where each has a line of its own, else `path`."""
    if path == "-" or not Path(path).is_file() or not nbests:
        return {nbest.utt: path for nbest in nbests}
    filled = [number for number, line in read_lines(path) if line.strip()]
    each = len(filled) == len(nbests)
    return {
        nbest.utt: f"{path}:{filled[row]}" if each else path for row, nbest in enumerate(nbests)
    }


def read_leniently(path: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return Kaldi text and the places of utterances, unchecked; nothing if it is no text."""
    try:
        rows = [
            (line.replace("\t", " ", 1).partition(" "), number)
            for number, line in read_lines(path)
            if line.strip()
        ]
    except UserError:
        return {}, {}
    return {utt: single(words) for (utt, _, words), _ in rows}, {
        utt: f"{path}:{number}" for (utt, _, _), number in rows
    }


def is_huggingface(lm: str) -> bool:
    """Return whether `lm` names a Hugging Face directory."""
    return lm.startswith("hf:") or (Path(lm) / "config.json").exists()


def read_words(lm: str) -> ModelWords:
    """Read the view of text of the language model in a file or directory."""
    lm = find_model(lm)
    if is_huggingface(lm):
        return ModelWords()
    directory = next(
        (path for path in (Path(lm), Path(lm) / SUBWORD) if (path / DESCRIPTION).exists()), None
    )
    if directory and not is_ngram(lm):
        subword = load_subword(directory)
        return ModelWords(subword.normaliser, known=subword.knows)
    model = NgramModel.load(lm)
    known = model.kenlm.__contains__ if model.foreign else model.subword.knows
    return ModelWords(model.normalise, model.split, known, tuple(model.notes))


def profile_text(path: str, model: ModelWords, wanted: set[str], lines: set[str]) -> Profile:
    """Return the profile of LM text, of words and lines that also occur in lists or references."""
    profile = Profile("text", path, split=model.split)
    folded = set(map(fold, wanted))
    is_wanted = lru_cache(WORDS)(lambda word: fold(word) in folded)
    for number, line in itertools.islice(read_text(path), LINES):
        text = model.normalise(line)
        if text.strip():
            profile.add(f"{path}:{number}", text, is_wanted)
            if text in lines:
                profile.whole.add(text)
    return profile


def fold(word: str) -> str:
    """Return a word in one form of Unicode and case, without punctuation around."""
    return NORMALISERS["librispeech"](UNIFY(word))


def most(items: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """Return `items`, the most frequent first."""
    return sorted(items, key=lambda item: (-counts[item], item))
