"""Cross-validation: a set is tuned on and judged on, each utterance by weights that did not see it.

The utterances are divided into folds, at random or by speaker; each fold has the weights that were
tuned without it (Stone 1974, Cross-Validatory Choice and Assessment of Statistical Predictions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import Finite
from lmtools.formats.kaldi_text import find_speakers

RANDOM, SPEAKER = "random", "speaker"


@dataclass(frozen=True)
class FoldPlan:
    """Division into `count` folds RANDOM or by SPEAKER; None: each speaker is a fold."""

    by: str
    count: int | None


class Fold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The weights that were learnt without these utterances; `name`: a number or its speakers."""

    name: str
    utterances: tuple[str, ...]
    features: dict[str, Finite]


class Folds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All folds, and `score`: the metric by the weights of each utterance's fold."""

    by: Literal["random", "speaker"]
    score: Finite
    parts: tuple[Fold, ...]

    def describe(self) -> str:
        """Describe the folds, as in `cross-validated, 3 folds by speaker`."""
        kind = "by speaker" if self.by == SPEAKER else "at random"
        return f"cross-validated, {len(self.parts)} folds {kind}"

    def divide(self, utterances: Sequence[str]) -> list[tuple[Fold, np.ndarray]]:
        """Return each fold with any of `utterances`, and their places."""
        places = {utt: place for place, utt in enumerate(utterances)}
        known = (
            (fold, [places[utt] for utt in fold.utterances if utt in places]) for fold in self.parts
        )
        return [(fold, np.array(rows)) for fold, rows in known if rows]


def parse_folds(word: str) -> FoldPlan:
    """Parse the value of --folds: N, speaker or speaker:N; ValueError for anything else."""
    kind, _, count = word.partition(":")
    by = SPEAKER if kind == SPEAKER else RANDOM
    number = count if by == SPEAKER else word
    if word == SPEAKER:
        return FoldPlan(SPEAKER, None)
    if not (number.isascii() and number.isdigit() and int(number) >= 2):
        raise ValueError(f"{word!r} is none of N, speaker and speaker:N, with N at least 2")
    return FoldPlan(by, int(number))


def assign_folds(
    utterances: Sequence[str], plan: FoldPlan, seed: int, speakers: Mapping[str, str] | None, path
) -> dict[str, tuple[str, ...]]:
    """Assign utterances to folds by name, whatever their order. Speakers are those of
    `speakers_of`; where they are more than folds, each goes, the largest first, into the smallest
    fold. UserError about `path` for too few.
    """
    if plan.by == RANDOM:
        if plan.count > len(utterances):
            raise UserError(
                f"{path}: {len(utterances)} utterances are fewer than {plan.count} folds; take"
                " fewer"
            )
        drawn = np.random.default_rng(seed).permutation(sorted(utterances)).tolist()
        return {str(i + 1): tuple(sorted(drawn[i :: plan.count])) for i in range(plan.count)}
    known = speakers_of(utterances, speakers, path)
    by_speaker: dict[str, list[str]] = {}
    for utt in sorted(utterances):
        by_speaker.setdefault(known[utt], []).append(utt)
    if len(by_speaker) < 2:
        raise UserError(
            f"{path}: all utterances are of one speaker, {next(iter(by_speaker), '')!r}; give their"
            " speakers with --utt2spk, or take folds at random, as in --folds 5"
        )
    groups: list[list[str]] = [
        [] for _ in range(min(plan.count or len(by_speaker), len(by_speaker)))
    ]
    for name in sorted(by_speaker, key=lambda name: (-len(by_speaker[name]), name)):
        min(groups, key=lambda group: sum(len(by_speaker[speaker]) for speaker in group)).append(
            name
        )
    return {
        "+".join(sorted(group)): tuple(utt for name in sorted(group) for utt in by_speaker[name])
        for group in groups
    }


def speakers_of(
    utterances: Sequence[str], speakers: Mapping[str, str] | None, path
) -> dict[str, str]:
    """Return the speaker of each utterance (`find_speakers`)."""
    remedy = "give the speakers with --utt2spk, or take folds at random, as in --folds 5"
    return find_speakers(utterances, speakers, path, remedy)
