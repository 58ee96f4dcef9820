"""References joined to N-best lists and lattices; and what recipes of Kaldi and ESPnet keep beside
lists, which may hold these. Sessions: which utterances of lists follow each other, and in which
order. What changes lists is in `edits`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.formats import FORMATS, kaldi_text
from lmtools.formats.registry import list_children
from lmtools.formats.texts import read_sentences, read_texts
from lmtools.types import SESSION, NBest

Item = TypeVar("Item")  # with the utterance's id as `utt`


def attach_refs(
    nbests: Sequence[NBest], refs: Mapping[str, str], nbest_path, ref_path
) -> list[NBest]:
    """Return `nbests` with the references of `refs`, joined by utterance id as `join_ids` does.
    References of other utterances, as of a bigger set, are not used; UserError if a list has none.
    """
    utts = Side([nbest.utt for nbest in nbests], str(nbest_path))
    try:
        ids = join_ids(utts, Side(refs, str(ref_path)), "utterances have no reference")
    except UserError as error:
        lines = ", or give them with --ref-lines if each line is a whole reference"
        raise UserError(f"{error}{lines if len(refs) == len(nbests) else ''}") from None
    return [replace(nbest, ref=refs[ids[nbest.utt]], more_refs=()) for nbest in nbests]


def attach_lines(
    nbests: Sequence[NBest], texts: Mapping[str, Sequence[str]], nbest_path
) -> list[NBest]:
    """Attach the references of `texts`, by path, to `nbests`: by sentence number or in their order.
    UserError unless each has as many as there are lists, or one for every number.
    """
    utts, rows = [nbest.utt for nbest in nbests], []
    for path, refs in texts.items():
        places = place_lines(utts, len(refs), path, nbest_path)
        rows.append([refs[place] for place in places])
    return [
        replace(nbest, ref=ref, more_refs=tuple(more))
        for nbest, ref, *more in zip(nbests, *rows, strict=True)
    ]


def place_lines(utts: Sequence[str], lines: int, path, source) -> list[int]:
    """Return which of the `lines` of `path`, from 0, belongs to each utterance of `source`: that of
    its number, where all are numbers from 0 or 1 (fairseq, Moses, Marian), else the next. UserError
    for another number of lines, and for numbers in disorder that say nothing.
    """
    numbers = read_numbers(utts)
    if 0 in numbers and max(numbers) < lines:
        return numbers
    if len(utts) != lines:
        raise other_number(path, lines, f"{len(utts)} lists", source)
    if sorted(numbers) == list(range(1, lines + 1)):
        return [number - 1 for number in numbers]
    for earlier, later in pairwise(numbers):
        refuse_disorder(earlier, later, source)
    return list(range(lines))


def read_numbers(utts: Sequence[str]) -> list[int]:
    """Return the numbers that utterance ids are, none where one is not or comes twice."""
    numbers = [int(utt) for utt in utts if re.fullmatch("[0-9]{1,15}", utt)]
    return numbers if len({*numbers}) == len(utts) else []


def refuse_disorder(earlier: int, later: int, source) -> None:
    if later < earlier:
        raise UserError(
            f"{source}: sentence {later} follows {earlier}, and lines are joined in order; sort"
            " the lists by number"
        )


def join_refs(items: Iterable[Item], ref, ref_lines, source) -> Iterator[tuple[Item, str | None]]:
    """Yield each item from `source` with its reference: by its `utt` from `ref`, in order from
    `ref_lines`, or None. UserError for what the references lack, and for other numbers of lines.
    """
    if ref_lines:
        lines, count, last = read_sentences(ref_lines), 0, []
        for count, item in enumerate(items, 1):
            number = read_numbers([item.utt])
            if last and number:
                refuse_disorder(last[0], number[0], source)
            last = number
            if count > len(lines):
                raise other_number(ref_lines, len(lines), f"{count} utterances or more", source)
            yield item, lines[count - 1]
        if count < len(lines):
            raise other_number(ref_lines, len(lines), f"{count} utterances", source)
        return
    texts = read_texts(ref) if ref else {}
    for item in items:
        if ref and item.utt not in texts:
            raise UserError(
                f"{ref}: no reference for lattice {item.utt!r}; make the ids the same on both sides"
            )
        yield item, texts.get(item.utt)


def other_number(path, lines: int, utterances: str, source) -> UserError:
    return UserError(
        f"{path}: {lines} lines for {utterances} in {source}; give one line each, in their order"
    )


SUFFIX = re.compile(r"\.(wav|flac|mp3|ogg|opus|m4a|sph|txt|json)$", re.IGNORECASE)
RULES = {
    "without directory and suffix": lambda utt: SUFFIX.sub("", utt.rpartition("/")[2]),
    "in lower case": str.lower,
    "in one form of Unicode (NFC)": lambda utt: unicodedata.normalize("NFC", utt),
}
BEHIND = "without what stands before - or _"
CSV = "looks like CSV without names of columns; let its first line be utt,text"
TABLE = "looks like a table with | between its columns; take two: cut -d'|' -f1,3 F | tr '|' ' '"


class Side(NamedTuple):
    """Ids of one of two files that are joined, and what messages call it."""

    ids: Collection[str]
    path: str


def join_ids(wanted: Side, given: Side, what: str) -> dict[str, str]:
    """Return which of the ids `given` stands for each one `wanted`: the same, or the one alike by
    the first of RULES that finds all, which is said. UserError otherwise; `what` is missing.
    """
    if found := pair_ids(wanted.ids, given.ids):
        rule, pairs = found
        if rule:
            utt = next(utt for utt in wanted.ids if utt not in given.ids)
            say(f"{wanted.path}: ids are joined {rule} ({utt} = {pairs[utt]})")
        return pairs
    if not given.ids:
        raise UserError(f"{given.path}: is empty; give a line `utt w1 w2 ...` for each utterance")
    missing = [utt for utt in wanted.ids if utt not in given.ids]
    for side in (given, wanted):
        for mark, cause in ((",", CSV), ("|", TABLE)):
            if all(mark in utt for utt in side.ids):
                raise UserError(f"{side.path}: {cause}")
    other = next((utt for utt in given.ids if utt not in wanted.ids), None)
    raise UserError(
        f"{wanted.path}: {len(missing)} of {len(wanted.ids)} {what} in {given.path} (first"
        f" {missing[0]!r}{'' if other is None else f', there {other!r}'});"
        f" {'exchange the files or ' if other is None else ''}make the ids the same on both sides"
    )


def pair_ids(wanted: Collection[str], given: Collection[str]) -> tuple[str, dict[str, str]] | None:
    """Return a rule and which of the ids `given` stands for each one `wanted`; None without."""
    if all(utt in given for utt in wanted):
        return "", {utt: utt for utt in wanted}
    for rule, pairs in alike(wanted, given):
        if pairs.keys() == set(wanted) and len(set(pairs.values())) == len(pairs):
            return rule, pairs
    return None


def alike(wanted: Collection[str], given: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for rule, change in RULES.items():
        forms = {utt: [change(utt)] for utt in wanted}
        yield rule, match(forms, {utt: change(utt) for utt in given})
    yield BEHIND, match({utt: tails(utt) for utt in wanted}, {utt: utt for utt in given})
    turned = match({utt: tails(utt) for utt in given}, {utt: utt for utt in wanted})
    alone = Counter(turned.values())  # no other id of these stands for it too
    yield BEHIND, {utt: other for other, utt in turned.items() if alone[utt] == 1}


def match(forms: Mapping[str, list[str]], given: Mapping[str, str]) -> dict[str, str]:
    """Return for each id the one given that has one of its forms, if no other has that too."""
    places: dict[str, list[str]] = {}
    for utt, form in given.items():
        places.setdefault(form, []).append(utt)
    found = {utt: next((places[f] for f in some if f in places), []) for utt, some in forms.items()}
    return {utt: one[0] for utt, one in found.items() if len(one) == 1}


def tails(utt: str) -> list[str]:
    """Return what follows each - and _ of an id, the longest first."""
    return [utt[mark.end() :] for mark in re.finditer("[-_]", utt)]


ESPNET = "espnet2"
NONE = "none"
# Of files in the directory of the lists or above it; ESPnet's `text` there is what it recognised
REFERENCES = ("text", "scoring_kaldi/test_filt.txt")
OF_ESPNET = ("score_wer/ref.trn",)


def find_lists(path, form: str | None = None) -> tuple[str, str]:
    """Return where the lists are that `path` means, and their format: a directory of a decoding
    may have them in one that is called `nbest..`. UserError where nothing is recognised.
    """
    if form:
        return str(path), form
    try:
        return str(path), FORMATS.detect(path)
    except UserError:
        folders = list_children(path) if Path(path).is_dir() else []
        folders = [child for child in folders if child.is_dir() and child.name[:5] == "nbest"]
        inside = [(str(child), FORMATS.detect(child, NONE)) for child in folders]
        found = [(child, name) for child, name in inside if name != NONE]
        if len(found) != 1:
            raise
        return found[0]


def find_references(path, form: str, utts: Collection[str]) -> str | None:
    """Return the file beside the lists with a reference for each of `utts`, by `pair_ids`."""
    for file in list_places(Path(path), form):
        try:
            if file.is_file() and pair_ids(utts, read_texts(file)):
                return str(file)
        except UserError:  # of a file that nobody asked for
            continue
    return None


def list_places(path: Path, form: str) -> Iterator[Path]:
    """Yield where references may be: in the directory of the lists and two above it, and in
    `data/SET/text` of the recipe whose `exp` holds them, sets named in `path` first.
    """
    folder = path if path.is_dir() else path.parent
    for place in (folder, *folder.parents[:2]) if path.is_dir() else [folder]:
        yield from (place / name for name in (OF_ESPNET if form == ESPNET else REFERENCES))
    for place in folder.parents:
        if place.name == "exp":
            texts = sorted(place.parent.glob("data/*/text"))
            yield from sorted(texts, key=lambda text: text.parent.name not in str(folder))


# of Kaldi's segments, behind the id: recording, begin, end (-1: its end), perhaps a channel
TIMES = re.compile(r"(\S+) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?|-1(?:\.0*)?)(?: \d| [A-Z])?")
SECONDS = re.compile(r"\d+(?:\.\d+)?")
NUMBER = re.compile(r"[-_][^-_]*$")


def find_sessions(nbests: Sequence[NBest], path: str | None = None) -> list[list[int]]:
    """Return the sessions of lists, the places of each in order: those of a file of Kaldi's
    (`segments`, by time; `utt2spk` or the like), of the extra `session`, or of ids up to the last
    `-` or `_`. UserError for an utterance that file or lists say nothing of.
    """
    names = SessionNames(path, nbests)
    sessions: dict[str, list[int]] = {}
    for place, nbest in enumerate(nbests):
        sessions.setdefault(names.of(nbest.utt), []).append(place)
    for session in sessions.values():
        order = names.order([nbests[place].utt for place in session])
        session[:] = [session[rank] for rank in order]
    if names.unsorted:
        say(
            f"warning: the ids of {len(names.unsorted)} sessions are not sorted and no times are"
            f" known (first {names.unsorted[0]!r}): taken as they stand in the file; give Kaldi's"
            " segments, or `start` in lists"
        )
    return list(sessions.values())


def join_texts(
    texts: Mapping[str, str], nbests: Sequence[NBest], path: str | None = None
) -> dict[str, str]:
    """Return texts by session, those of its utterances joined in order; sessions are those of
    `find_sessions`. A session none of whose utterances has a text is not there.
    """
    names = SessionNames(path, nbests)
    joined = {}
    for places in find_sessions(nbests, path):
        utts = [nbests[place].utt for place in places]
        if said := [texts[utt] for utt in utts if utt in texts]:
            joined[names.of(utts[0])] = " ".join(filter(None, said))
    return joined


class SessionNames:
    """The session and begin in seconds of each utterance: of a file, else of lists (the extras
    `session`, `start`), else by ids.
    """

    def __init__(self, path: str | None, nbests: Sequence[NBest]):
        self.path = path
        self.given, self.times = read_sessions(path) if path else (read_extras(nbests), {})
        self.times = self.times or read_starts(nbests)
        self.unsorted: list[str] = []  # the first utterance of each session in no order

    def of(self, utt: str) -> str:
        """Return the session of an utterance; UserError where the file has none."""
        if self.path and utt not in self.given:
            raise UserError(f"{self.path}: has no session of {utt!r}; give that of these lists")
        return self.given.get(utt) or NUMBER.sub("", utt)

    def order(self, utts: Sequence[str]) -> list[int]:
        """Return the places of a session's utterances by time where all have one, else by numbers
        in ids that are sorted as text, else as they are.
        """
        places = range(len(utts))
        if all(utt in self.times for utt in utts):
            return sorted(places, key=lambda place: self.times[utts[place]])
        if list(utts) == sorted(utts):
            return sorted(places, key=lambda place: split_numbers(utts[place]))
        self.unsorted.append(utts[0])
        return list(places)


def split_numbers(utt: str) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]{1,18})", utt)
    return [(int(part), "") if n % 2 else (-1, part) for n, part in enumerate(parts)]


def read_extras(nbests: Sequence[NBest]) -> dict[str, str]:
    """Return the session of each utterance whose lists have one; UserError where only some do."""
    said = {nbest.utt: nbest.extra[SESSION] for nbest in nbests if SESSION in nbest.extra}
    if said and len(said) < len(nbests):
        silent = next(nbest.utt for nbest in nbests if nbest.utt not in said)
        raise UserError(f"utterance {silent!r} has no {SESSION}, others have; give it to all")
    return said


def read_starts(nbests: Sequence[NBest]) -> dict[str, float]:
    """Return the begin in seconds of each list that has one (`start`)."""
    starts = {nbest.utt: nbest.extra.get("start", "") for nbest in nbests}
    return {utt: float(start) for utt, start in starts.items() if SECONDS.fullmatch(start)}


def read_sessions(path: str) -> tuple[dict[str, str], dict[str, float]]:
    """Read sessions by utterance, and begins if known; of a directory `segments` or `utt2spk`."""
    if Path(path).is_dir():
        held = [Path(path, name) for name in ("segments", "utt2spk") if Path(path, name).exists()]
        if not held:
            raise UserError(f"{path}: holds neither segments nor utt2spk; name a file of sessions")
        path = str(held[0])
    rows = kaldi_text.read(path)
    matches = {utt: TIMES.fullmatch(row) for utt, row in rows.items()}
    if rows and all(matches.values()):
        names = {utt: match[1] for utt, match in matches.items() if match}
        return names, {utt: float(match[2]) for utt, match in matches.items() if match}
    if wrong := [utt for utt, row in rows.items() if len(row.split()) != 1]:
        raise UserError(
            f"{path}: {wrong[0]!r} has {rows[wrong[0]]!r}; give Kaldi's segments, or a session an"
            " utterance as in utt2spk"
        )
    return rows, {}
