"""Glossaries: files of phrases, for all utterances or for some.

A line of text is a phrase: `Kubernetes`, with a weight `Kubernetes :2.5` (default 1), and with what
recognisers write for it, `Kubernetes | cooper netties | kuber netes`. A file `*.jsonl` has objects
`{"id": "1089-134686", "phrases": ["Kubernetes | cooper netties", ...]}`, whose phrases are for the
utterance of that id, or for all utterances of a speaker or session of it. `foreign` reads what
other programs have.
"""

import functools
import itertools
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.grammar import check_text, fit, list_texts, parse_json
from lmtools.base.log import say_lines
from lmtools.base.options import check_options, list_options, option, parse_option
from lmtools.formats import kaldi_text
from lmtools.phrases.foreign import read_foreign
from lmtools.phrases.matching import PhraseAutomaton, PhrasePrefixes, spell, split_text
from lmtools.text.normaliser import change_case
from lmtools.types import PHRASES, NBest

GREEK = re.compile("[\u0370-\u03ff]")
WEIGHT = re.compile(r"(.*\S)\s+:(\S+)")
NUMBERS = re.compile(r"\w\s+[0-9.]+$")
MOST = 1000.0  # of a weight
KEPT = 64  # automata of groups of utterances
PREFIX = re.compile(r"[-_]")


@dataclass(frozen=True)
class PhraseSpec:
    """Specification of a glossary: its file and options."""

    path: str
    spelling: bool | None = option(
        None,
        "whether phrases are spelled as the glossary does (default: by transcribe and serve alone)",
    )
    utt2spk: str | None = option(
        None,
        "Kaldi utt2spk with the speakers or sessions that are ids of the glossary (default: the"
        " beginnings of the ids of utterances)",
        path=True,
    )

    @classmethod
    def parse(cls, text: str) -> "PhraseSpec":
        """Parse `F,option=value,..`, or a path that exists; else UserError."""
        path, values = text, {}
        while "," in path and not Path(path).exists():
            path, _, last = path.rpartition(",")
            name, sign, value = last.partition("=")
            if not sign or name not in list_options(cls):
                known = ", ".join(list_options(cls))
                raise UserError(f"{text}: no option {last!r} of a glossary; known: {known}")
            values[name] = parse_option(cls, name, value)
        return cls(path, **values)

    @property
    def signature(self) -> dict[str, str]:
        return {PHRASES: "as given"}

    def __post_init__(self):
        check_options(self)

    def load(self) -> "Glossary":
        """Read the glossary and its utt2spk; say how, if it is another program's."""
        glossary = read_glossary(self, kaldi_text.read(self.utt2spk) if self.utt2spk else None)
        say_lines(glossary.notes)
        return glossary


@dataclass(frozen=True)
class Phrase:
    """A phrase as written, the weight of each word, and what else is recognised for it."""

    written: str
    weight: float = 1.0
    spoken: tuple[str, ...] = ()

    @functools.cached_property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """The words for matching of each form: the phrase's own, those of the spoken, and those
        that upper case without accents makes of both (Greek).
        """
        texts = self.written, *self.spoken
        upper = (change_case(text, "upper", "el") for text in texts if GREEK.search(text))
        return tuple(dict.fromkeys(tuple(split_text(text)) for text in (*texts, *upper)))


def parse_phrase(text: str, where: str) -> Phrase:
    """Parse `PHRASE [:WEIGHT] [| SPOKEN]...`; UserError at `where`."""
    first, *spoken = (" ".join(part.split()) for part in text.split("|"))
    weight = 1.0
    if match := WEIGHT.fullmatch(first):
        first, weight = match[1], read_weight(match[2], where)
    for part in (first, *spoken):
        if not split_text(part):
            raise UserError(
                f"{where}: {part!r:.60} has no words; write PHRASE, PHRASE :WEIGHT, or PHRASE |"
                " SPOKEN | SPOKEN"
            )
    return Phrase(first, weight, tuple(spoken))


def read_weight(text: str, where: str) -> float:
    """Return the weight that a line gives; UserError for none from 0 to MOST."""
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= MOST:
        raise UserError(
            f"{where}: weight {text!r:.40} is no number from 0 to {MOST:g}; write PHRASE :2.5"
        )
    return weight


@dataclass(frozen=True)
class Glossary:
    """Phrases for all (`common`), or by id of utterance, speaker, session (`own`); `speakers` of
    utterances of other ids, `notes` on how the file was read.
    """

    spec: PhraseSpec
    common: tuple[Phrase, ...] = ()
    own: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)
    speakers: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        build = functools.lru_cache(maxsize=KEPT)(self.build)
        object.__setattr__(self, "build_once", build)

    def ids_of(self, utt: str) -> tuple[str, ...]:
        """Return the ids of `own` that mean an utterance: its own, its speaker's, beginnings."""
        if not self.own:
            return ()
        ids = [utt, self.speakers.get(utt, utt)]
        ids += [utt[: match.start()] for match in PREFIX.finditer(utt)]
        return tuple(id for id in dict.fromkeys(ids) if id in self.own)

    def phrases_of(self, utt: str) -> tuple[Phrase, ...]:
        return self.common + tuple(p for id in self.ids_of(utt) for p in self.own[id])

    def of(self, utt: str) -> PhraseAutomaton:
        """Return the automaton of the phrases for an utterance; values are weights times words."""
        return self.build_once(self.ids_of(utt), not self.plain)

    def spell_lists(self, lists: Sequence[NBest]) -> list[NBest]:
        """Return lists with the phrases as the glossary writes them; texts stay."""
        return [
            replace(
                nbest,
                hyps=tuple(
                    replace(hyp, written=spell(hyp.display, self.unweighted(nbest.utt)))
                    for hyp in nbest.hyps
                ),
            )
            for nbest in lists
        ]

    def prefixes(self, utt: str) -> PhrasePrefixes:
        return PhrasePrefixes(self.of(utt))

    def unweighted(self, utt: str) -> PhraseAutomaton:
        return self.build_once(self.ids_of(utt), False)

    @functools.cached_property
    def plain(self) -> bool:
        phrases = itertools.chain(self.common, *self.own.values())
        return all(phrase.weight == 1 for phrase in phrases)

    def build(self, ids: tuple[str, ...], weighted: bool) -> PhraseAutomaton:
        """Build the automaton of the common phrases and those of `ids`."""

        def forms():
            for phrase in (*self.common, *(phrase for id in ids for phrase in self.own[id])):
                weight = phrase.weight if weighted else 1.0
                for words in phrase.forms:
                    yield words, weight * len(words), phrase.written

        return PhraseAutomaton(forms())

    @property
    def size(self) -> int:
        return len(self.common) + sum(map(len, self.own.values()))

    def warn_absent(self, texts: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield a warning where there are phrases, but none in the texts (utterance, text)."""
        found = any(self.unweighted(utt).value(split_text(text)) for utt, text in texts)
        if self.size and not found:
            first = next(itertools.chain(self.common, *self.own.values()))
            yield (
                f"warning: {self.spec.path}: none of the {self.size} phrases (first"
                f" {first.written!r:.60}) is in any hypothesis or reference; check that a line is"
                " PHRASE, PHRASE :WEIGHT, or PHRASE | SPOKEN"
            )

    def unused(self, utterances: Iterable[str]) -> list[str]:
        used = {id for utt in utterances for id in self.ids_of(utt)}
        return [id for id in self.own if id not in used]


ENTRY = 'write {"id": "UTTERANCE", "phrases": ["PHRASE", ...]}'


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a glossary by id."""

    id: str
    phrases: list[str]


def read_glossary(spec: PhraseSpec, speakers: Mapping[str, str] | None = None) -> Glossary:
    """Read a glossary; UserError with the wrong line. An empty file has no phrases."""
    if str(spec.path).removesuffix(".gz").removesuffix(".xz").endswith(".jsonl"):
        own: dict[str, tuple[Phrase, ...]] = {}
        for number, line in read_lines(spec.path):
            where = f"{spec.path}:{number}"
            if line.strip():
                tree = parse_json(line, where, ENTRY)
                entry = fit(tree, Entry, where, remedy=ENTRY)
                own[entry.id] = own.get(entry.id, ()) + make_phrases(entry.phrases, where)
        return Glossary(spec, own=own, speakers=speakers or {})
    lines, kind = read_foreign(spec.path, [*read_lines(spec.path)])
    phrases = [parse_phrase(line.text, line.where) for line in lines]
    weights = [line.weight and read_weight(line.weight, line.where) for line in lines]
    notes = []
    if given := [*filter(None, weights)]:
        middle = statistics.median(given)
        kind = f"{kind}, weights divided by their median {middle:g}"
        phrases = [
            phrase if weight is None else replace(phrase, weight=min(weight / middle, MOST))
            for phrase, weight in zip(phrases, weights, strict=True)
        ]
    if kind:
        notes.append(f"{spec.path}: {len(phrases)} phrases, read as {kind}")
    if len(lines) > 2 and all(NUMBERS.search(line.text) for line in lines):
        notes.append(
            f"warning: {lines[0].where}: {lines[0].text!r:.60} and all others end in a number,"
            " which is matched as a word; if it is a weight, write PHRASE :WEIGHT"
        )
    return Glossary(spec, tuple(phrases), notes=tuple(notes))


def make_phrases(texts: Iterable[str], where: str) -> tuple[Phrase, ...]:
    return tuple(
        parse_phrase(text, f"{where}: phrases[{place}]")
        for place, text in enumerate(list_texts(texts, f"{where}: phrases"))
    )


def make_glossary(phrases: Sequence[str] | Mapping[str, Sequence[str]], **options) -> Glossary:
    """Make a glossary of lines: one sequence for all utterances, or sequences by id."""
    spec = PhraseSpec("phrases", **options)
    if isinstance(phrases, Mapping):
        own = {
            check_text(id, "phrases: id"): make_phrases(texts, f"phrases[{id!r}]")
            for id, texts in phrases.items()
        }
        return Glossary(spec, own=own)
    return Glossary(spec, make_phrases(phrases, "phrases"))
