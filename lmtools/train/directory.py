"""The model directory of a training: what is found in it, how room is made."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import torch

from lmtools.base.atomic import ASIDE, atomic_directory, atomic_text
from lmtools.base.config import as_tree
from lmtools.base.errors import UserError
from lmtools.base.seal import Damaged
from lmtools.models.checkpoint import (
    CONFIG,
    WEIGHTS,
    Progress,
    describe_model,
    is_prepared,
    load_checked,
    model_hash,
    prepare_directory,
    training_metadata,
)
from lmtools.models.device import machine_facts, resolve_precision
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES, TwoWay
from lmtools.models.outputs import CRITERIA
from lmtools.models.settings import Settings
from lmtools.text.corpus import Corpus
from lmtools.train.lists import ListFile, open_lists
from lmtools.train.log import import_writer


class TrainingPlan(NamedTuple):
    """Settings, corpora and place of a training; `fingerprint`: hash of what sets its weights."""

    settings: Settings
    train: Corpus | ListFile
    valid: Corpus | ListFile
    out: Path
    device: torch.device
    fingerprint: str
    init: Path | None = None  # the model directory whose weights it starts from
    also: Mapping[str, Corpus] = MappingProxyType({})  # on which loss is measured too
    events: Path | None = None  # for TensorBoard's event files

    @classmethod
    def read(
        cls, settings: Settings, train, valid, *, out, device: torch.device, init=None, also=None
    ) -> "TrainingPlan":
        """Read the plan, its corpora, and the precision that `auto` is; UserError for damaged or
        unfit corpora, vocabularies, or `init`. `also` has no part in the fingerprint.
        """
        if init is not None and Path(init).resolve() == Path(out).resolve():
            raise UserError(f"{out}: cannot start from itself; give another directory as --out")
        if settings.partial and init is None:
            raise UserError(f"{out}: freeze keeps weights of another model; give it as --init DIR")
        if settings.batch.streams or settings.batch.unroll:
            raise UserError("batch.streams, batch.unroll: are of older versions; drop them")
        precision = resolve_precision(settings.precision, device)
        settings = dataclasses.replace(settings, precision=precision)
        if settings.lists.loss:
            train, valid = open_lists(settings.lists, (train, valid), init=init, also=also)
            guards = {}
        else:
            train, valid = Corpus.open(train), Corpus.open(valid)
            guards = {name: Corpus.open(path) for name, path in (also or {}).items()}
        pairs = OBJECTIVES[settings.objective].pairs
        for corpus in (train, valid, *guards.values()) if not settings.lists.loss else ():
            corpus.check_pairs(pairs, f"objective {settings.objective}").check(train.subword)
        ids = train.subword.words if settings.objective == TwoWay.name else train.subword
        if ids is not None:
            output = CRITERIA[settings.criterion].complete(settings.output, ids.size)
            settings = dataclasses.replace(settings, output=output)
        parts = [as_tree(settings), train.subword.hash, train.digest(), valid.digest()]
        if init is not None:
            parts.append(model_hash(init))
        fingerprint = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        places = {"out": Path(out), "init": Path(init) if init else None}
        places["device"] = device
        return cls(settings, train, valid, fingerprint=fingerprint, also=guards, **places)

    def make_lm(self, counts=None) -> LanguageModel:
        """Return the model that learns, before anything is loaded into it."""
        subword = self.train.subword
        try:
            return LanguageModel(self.settings, subword.size, counts, subword.words)
        except UserError as error:
            raise UserError(f"{self.out}: {error}") from None

    def with_events(self, directory) -> "TrainingPlan":
        """Return the plan with a directory for event files, if any; needs TensorBoard."""
        if directory is None:
            return self
        import_writer()
        return self._replace(events=Path(directory))


class DirectoryState(NamedTuple):
    """State of the model directory before a training: `progress` of the training there, None to
    start; `aside`, why to set it aside; `lost`, why its weights are damaged although it can go on.
    """

    progress: Progress | None = None
    aside: str | None = None
    lost: str | None = None

    @property
    def complete(self) -> bool:
        return self.progress is not None and self.progress.done and not self.lost

    @property
    def rebuilt(self) -> bool:
        return self.lost is not None and self.progress.best_step == self.progress.step


def inspect_directory(plan: TrainingPlan) -> DirectoryState:
    """Return the state of the model directory; all of its weights and its checkpoint are read."""
    path = plan.out / WEIGHTS
    lost, metadata = None, {}
    try:
        metadata = load_checked(path)[1] if path.exists() else {}
    except Damaged as error:
        lost = str(error).partition("; ")[0]
    try:
        state = training_metadata(plan.out)
    except Damaged as error:
        return DirectoryState(aside=str(error).partition("; ")[0])
    other = f"{plan.out}: held a training of other settings or data"
    foreign = metadata.get("fingerprint", plan.fingerprint) != plan.fingerprint
    if state is None:
        return DirectoryState(aside=lost or (other if foreign else None))
    if state["fingerprint"] != plan.fingerprint:
        return DirectoryState(aside=other)
    progress = Progress(**state["progress"])
    if progress.best is None:  # no weights were written yet
        return DirectoryState(progress)
    if foreign:
        lost = f"{path}: weights of another training"
    if not path.exists():
        lost = f"{path}: is not there"
    result = DirectoryState(progress, lost=lost)
    return DirectoryState(aside=lost) if lost and progress.done and not result.rebuilt else result


def make_room(
    plan: TrainingPlan, directory_state: DirectoryState, lm: LanguageModel | None
) -> None:
    """Make or mend a model directory, setting aside what is in the way; `lm`: None if complete."""
    if directory_state.aside:
        set_aside(plan.out, directory_state.aside)
    if directory_state.lost:
        remedy = (
            "made again from the checkpoint"
            if directory_state.rebuilt
            else "the next validation that is better than the best so far writes them"
        )
        print(f"{directory_state.lost}; {remedy}", flush=True)
        (plan.out / WEIGHTS).unlink(missing_ok=True)
    settings, subword = plan.settings, plan.train.subword
    if directory_state.complete and is_prepared(plan.out, settings, subword):
        return
    if directory_state.complete:
        print(f"{plan.out}: {CONFIG} or subword was damaged or changed; written again", flush=True)
    lm = lm or plan.make_lm()
    machine, facts = machine_facts(plan.device), describe_model(lm, subword)
    prepare_directory(plan.out, settings, subword, machine=machine, facts=facts)


def keep_weights(out: Path, epoch: int) -> None:
    """Copy the best weights to `epoch-N`, as a training of N epochs leaves them."""
    if (out / WEIGHTS).exists():  # weights that were lost come back with the next better ones
        with atomic_directory(out / f"epoch-{epoch}", CONFIG, follow=False) as kept:
            shutil.copytree(out / "subword", kept / "subword")
            for name in (WEIGHTS, CONFIG):
                shutil.copy(out / name, kept / name)


def set_aside(out: Path, why: str) -> None:
    """Move a model directory out of the way under the first free number."""
    number = next(n for n in range(1, 10_000) if not Path(f"{out}.{n}").exists())
    shutil.move(out, f"{out}.{number}")
    with atomic_text(Path(f"{out}.{number}", ASIDE), follow=False) as stream:
        stream.write(f"{why}\n")
    print(
        f"{why}; it is kept as {out}.{number}, and training starts from the beginning", flush=True
    )
