"""Outputs of several systems combined by votes on their words, and the vote tuned on a development
set.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

import msgspec
from msgspec.structs import replace as change
from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.base.grammar import fit
from lmtools.base.seal import read_json, write_json
from lmtools.formats import detect, read
from lmtools.formats.registry import is_pipe, read_first_line
from lmtools.formats.texts import KALDI
from lmtools.networks import files as network_files
from lmtools.networks.files import NETWORKS, recognises
from lmtools.networks.lists import NetworkPlan, build_networks, rank_lists
from lmtools.networks.rover import FREQUENCY, VOTES, Ballots, Row, Token, Vote, align_systems, elect
from lmtools.text import NORMALISERS
from lmtools.types import NO_WORD, ConfusionNetwork, Slot

CTM = "ctm"
UNLIKE = 0.02  # share of words whose spelling is no chance
normalise = lru_cache(1 << 16)(NORMALISERS["librispeech"])


@dataclass(frozen=True)
class SystemOutput:
    """The output of a system: a network of each utterance; `form` is the file's format."""

    path: str
    networks: Mapping[str, ConfusionNetwork]
    form: str = ""


def read_system(path: str, form: str | None, plan: NetworkPlan) -> SystemOutput:
    """Read a system's networks, or lists of hypotheses with the posteriors of `plan`."""
    seen = form is None and path != "-" and Path(path).is_file() and not is_pipe(path)
    if form in NETWORKS or (seen and recognises(Path(path), read_first_line(path))):
        items = network_files.read(path)
        return SystemOutput(path, {network.utt: network for network in items})
    form = form or detect(path, KALDI)
    built = build_networks(rank_lists(read(path, form), None, None, path), plan)
    return SystemOutput(path, {network.utt: network for network in built}, form)


def complete_systems(systems: Sequence[SystemOutput]) -> tuple[list[SystemOutput], list[str]]:
    """Return systems with empty networks where a ctm lacks utterances, and warnings."""
    utts = Counter(utt for system in systems for utt in system.networks)
    complete, warnings = [], []
    for system in systems:
        missing = [utt for utt in utts if utt not in system.networks]
        shared = any(utts[utt] > 1 for utt in system.networks)
        if missing and shared and system.form.partition(":")[0] == CTM:
            empty = {utt: ConfusionNetwork(utt, ()) for utt in missing}
            heard = {**empty, **system.networks}
            system = replace(system, networks={utt: heard[utt] for utt in utts})
            warnings.append(
                f"warning: {system.path}: no words of {len(missing):,} of {len(utts):,} utterances"
                f" (the first is {missing[0]!r}); they count as utterances where it heard nothing"
            )
        complete.append(system)
    return complete, warnings


def find_spellings(systems: Sequence[SystemOutput]) -> Iterator[str]:
    """Yield a warning where systems spell words unlike but for case and punctuation."""
    unlike, words = Counter(), 0
    for _, parts in join_systems(systems):
        spoken = [part.text.split() for part in parts]
        words += sum(map(len, spoken))
        if len({*map(frozenset, spoken)}) == 1:
            continue
        for place, own in enumerate(spoken):
            others = {word for other in spoken if other is not own for word in other}
            bare = {normalise(word) for word in others}
            unlike[place] += sum(w not in others and normalise(w) in bare for w in own)
    if unlike.total() > UNLIKE * words:
        place = max(range(len(systems)), key=unlike.__getitem__)
        path, form = systems[place].path, systems[place].form or "FORMAT"
        yield (
            f"warning: {unlike.total():,} of {words:,} words, most in {path}, differ from those of"
            " other systems only by case or punctuation, and so count as other words; write all"
            f" alike: lmtools convert {path} OUT.jsonl --format {form} --normaliser librispeech"
        )


def join_systems(systems: Sequence[SystemOutput]) -> Iterator[tuple[str, list[ConfusionNetwork]]]:
    """Yield each utterance with the systems' networks; UserError unless all have the same ones."""
    first = systems[0].networks
    for system in systems[1:]:
        if alone := system.networks.keys() ^ first.keys():
            utt = min(alone)
            lacking = system if utt in first else systems[0]
            raise UserError(
                f"{lacking.path}: no utterance {utt!r}, which another system has; give outputs of"
                " the same utterances"
            )
    for utt in first:
        yield utt, [system.networks[utt] for system in systems]


def combine_systems(systems: Sequence[SystemOutput], vote: Vote) -> Iterator[ConfusionNetwork]:
    """Yield combined networks: posteriors are shares of votes, confidences the winners'."""
    if vote.trust and (len(vote.trust) != len(systems) or not sum(vote.trust) > 0):
        raise UserError(
            f"weights of {len(vote.trust)} systems for {len(systems)}; give one each, in their"
            " order, or tune them with these systems"
        )
    for utt, parts in join_systems(systems):
        ref = next((part.ref for part in parts if part.ref is not None), None)
        rows = align_systems([read_tokens(part) for part in parts])
        pairs = zip(rows, elect(rows, vote), strict=True)
        yield ConfusionNetwork(utt, tuple(count_votes(*pair, vote) for pair in pairs), ref)


def read_tokens(network: ConfusionNetwork) -> list[Token]:
    return [Token(slot.chosen, slot.confidence, slot.time) for slot in network.spoken]


def count_votes(row: Row, winner: Token, vote: Vote) -> Slot:
    trust = vote.trust or (1.0,) * len(row)
    shares: dict[str, float] = {}
    for token, weight in zip(row, trust, strict=True):
        shares[token.word] = shares.get(token.word, 0.0) + weight / sum(trust)
    shares = dict(sorted(shares.items(), key=lambda item: (-item[1], item[0] == NO_WORD)))
    confidence = shares[winner.word] if vote.method == FREQUENCY else winner.confidence
    return Slot(shares, winner.word, min(max(confidence, 0.0), 1.0), winner.time)


def save_vote(vote: Vote, path) -> None:
    write_json(msgspec.to_builtins(vote), path, allow_nan=False)


def load_vote(path) -> Vote:
    """Read a vote; UserError for what `save_vote` cannot have written."""
    remedy = "write it again with lmtools network tune"
    return fit(read_json(path, remedy), Vote, path, remedy=remedy)


def order_systems(vote: Vote, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the systems in the order that a vote was tuned in, and a line that names each beside
    its trust: by what tells names of files apart where both sides have that, else as they are.
    """
    if not vote.trust or len(vote.trust) != len(paths):
        return list(paths), []
    known, given = map(tell_apart, (vote.systems, paths))
    ordered, how = list(paths), f"in the order of tuning ({', '.join(vote.systems) or 'unnamed'})"
    if len({*given}) == len(given) and {*known} == {*given}:
        ordered, how = [paths[given.index(name)] for name in known], "by name"
    pairs = zip(ordered, vote.trust, strict=True)
    return ordered, [f"trust {how}: {', '.join(f'{path} {value:g}' for path, value in pairs)}"]


def tell_apart(paths: Sequence[str]) -> list[frozenset[str]]:
    """Return the parts of each name that not all have: `{good}` of good.dev.txt, poor.dev.txt."""
    parts = [frozenset(re.split(r"[\W_]+", path)) for path in paths]
    return [part - frozenset.intersection(*parts) for part in parts]


GRID = tuple(step / 10 for step in range(11))  # of alpha and of the confidence of none
TRUSTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


def tune_vote(systems: Sequence[SystemOutput], refs: Mapping[str, str]) -> Vote:
    """Return the vote of the fewest word errors against the references, tuned one value after
    another; among equals the earlier, nearest to trust 1.
    """
    trial = VoteTrial([(refs[utt].split(), parts) for utt, parts in join_systems(systems)])
    trust = (1.0,) * len(systems)
    tuned = [climb(trial.count_errors, Vote(method, trust=trust)) for method in VOTES]
    best = min(tuned, key=itemgetter(0))[1]
    return change(best, systems=tuple(system.path for system in systems))


class VoteTrial:
    """Word errors of votes, counted where systems differ, and once for each choice."""

    def __init__(self, utterances: Sequence[tuple[list[str], list[ConfusionNetwork]]]):
        self.sure, self.refs = 0, []  # errors where all agree; references of other utterances
        rows: list[Row] = []  # in which systems differ
        self.words: list[list[str | int]] = []  # of these utterances; numbers: places in `rows`
        for ref, parts in utterances:
            if len({part.text for part in parts}) == 1:
                self.sure += Levenshtein.distance(ref, parts[0].text.split())
                continue
            self.refs.append(ref)
            self.words.append([])
            for row in align_systems([read_tokens(part) for part in parts]):
                same = len({token.word for token in row}) == 1
                self.words[-1].append(row[0].word if same else len(rows))
                rows += [] if same else [row]
        self.ballots = Ballots(rows) if rows else None
        self.counted: list[dict[tuple[str, ...], int]] = [{} for _ in self.refs]
        self.votes: dict[Vote, int] = {}

    def count_errors(self, vote: Vote) -> int:
        if vote not in self.votes:
            won, errors = self.ballots.elect(vote) if self.ballots else [], self.sure
            for ref, words, counted in zip(self.refs, self.words, self.counted, strict=True):
                chosen = (won[word] if isinstance(word, int) else word for word in words)
                spoken = tuple(word for word in chosen if word != NO_WORD)
                if spoken not in counted:
                    counted[spoken] = Levenshtein.distance(ref, spoken)
                errors += counted[spoken]
            self.votes[vote] = errors
        return self.votes[vote]


def climb(count_errors, vote: Vote) -> tuple[int, Vote]:
    """Return the fewest errors and the vote that has them, from `vote` on, a setting at a time."""
    best = count_errors(vote), vote
    while True:
        before = best[0]
        for name in ("alpha", "null") if vote.method != FREQUENCY else ():
            tries = [change(best[1], **{name: value}) for value in GRID]
            best = min([best, *((count_errors(one), one) for one in tries)], key=itemgetter(0))
        for place in range(len(vote.trust)):
            old = best[1].trust
            tries = [change(best[1], trust=(*old[:place], t, *old[place + 1 :])) for t in TRUSTS]
            best = min([best, *((count_errors(one), one) for one in tries)], key=itemgetter(0))
        if best[0] == before:
            return best
