"""The one training loop, for every model, objective and criterion.

Every random choice is a function of (seed, epoch) or (seed, step): a training that was killed and
resumed makes the same weights, byte for byte on a CPU of one kind with one number of threads, as
one that never stopped.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import shutil
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from lmtools.checkpoint import (
    CONFIG,
    WEIGHTS,
    Progress,
    describe_model,
    is_prepared,
    load_checked,
    load_training,
    prepare,
    save_training,
    save_weights,
    training_metadata,
)
from lmtools.corpus import Corpus
from lmtools.device import autocast, machine_facts, resolve_precision
from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.lock import hold_lock
from lmtools.objectives import OBJECTIVES, TwoWay, target_counts
from lmtools.seal import Damaged
from lmtools.settings import Settings
from lmtools.train.batches import Sentences
from lmtools.train.log import Log, Silence
from lmtools.train.optim import Saved, build_optimiser, clip_gradients, learning_rate, shrunk_rate
from lmtools.train.parallel import World, joined
from lmtools.train.streams import Streams

VALIDATION_SEED = 0  # the masked objective masks the same validation tokens every time


class Stopped(Exception):
    """SIGTERM came; the state is saved."""


class Found(NamedTuple):
    """What a training finds in its model directory.

    `progress`: how far it came there, None where it has to start; `aside`: why what is there has to
    make room; `lost`: why its weights are not those that they should be, although it can go on.
    """

    progress: Progress | None = None
    aside: str | None = None
    lost: str | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.progress is not None and self.progress.done and not self.lost

    @property
    def rebuilt(self) -> bool:
        """Whether the lost weights are those of the checkpoint."""
        return self.lost is not None and self.progress.best_step == self.progress.step


def train(settings: Settings, train_bin, valid_bin, out, device: str = "auto") -> Progress:
    """Train into the model directory `out`, going on from what a killed run left there; returns at
    once when it is complete and undamaged.

    A directory that holds a training of other settings or data, or a damaged one that cannot be
    mended exactly, is set aside (`out.1`, `out.2` ...), never overwritten. UserError where another
    process trains into it. As one of several processes of torchrun it trains together with the
    others; how many they are may change when a training goes on.
    """
    with joined(device) as world, contextlib.ExitStack() as held:
        world.agree(lambda: held.enter_context(hold_lock(out)) if world.first else None)
        settings = world.agree(lambda: on_device(settings, world.device(device)))
        corpora = world.agree(lambda: read_corpora(train_bin, valid_bin))
        fingerprint = world.agree(lambda: identify(settings, *corpora))
        found = world.agree(lambda: inspect(out, fingerprint))
        training = None
        if not found.complete:  # refuses what does not fit before anything is written
            training = world.agree(
                lambda: Training(settings, *corpora, out, world.device(device), fingerprint, world)
            )
        world.agree(
            lambda: (
                make_room(out, settings, corpora[0].subword, found, world.device(device), training)
                if world.first
                else None
            )
        )
        return training.run(found) if training else found.progress


def on_device(settings: Settings, device: torch.device) -> Settings:
    """The settings with the precision that `auto` is there."""
    return dataclasses.replace(settings, precision=resolve_precision(settings.precision, device))


def read_corpora(train_bin, valid_bin) -> tuple[Corpus, Corpus]:
    """The corpora of a training, of one vocabulary."""
    train, valid = Corpus.open(train_bin), Corpus.open(valid_bin)
    return train, valid.check(train.subword)


def identify(settings: Settings, *corpora: Corpus) -> str:
    """A hash of all that determines the weights; UserError where a corpus is damaged."""
    parts = [
        dataclasses.asdict(settings),
        corpora[0].subword.hash,
        *(corpus.digest() for corpus in corpora),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def inspect(out, fingerprint: str) -> Found:
    """What is in the model directory `out`; all of its weights and its checkpoint are read."""
    path = Path(out) / WEIGHTS
    lost, said = None, {}
    try:
        said = load_checked(path)[1] if path.exists() else {}
    except Damaged as error:
        lost = str(error).partition("; ")[0]
    try:
        state = training_metadata(out)
    except Damaged as error:
        return Found(aside=str(error).partition("; ")[0])
    other = f"{out}: held a training of other settings or data"
    if state is None:
        return Found(
            aside=lost or (other if said.get("fingerprint", fingerprint) != fingerprint else None)
        )
    if state["fingerprint"] != fingerprint:
        return Found(aside=other)
    if said.get("fingerprint", fingerprint) != fingerprint:
        lost = f"{path}: weights of another training"
    progress = Progress(**state["progress"])
    if not path.exists() and progress.best is not None:
        lost = f"{path}: is not there"
    found = Found(progress, lost=lost if progress.best is not None else None)
    return Found(aside=lost) if found.lost and progress.done and not found.rebuilt else found


def make_room(
    out,
    settings: Settings,
    subword,
    found: Found,
    device: torch.device,
    training: "Training | None" = None,
) -> None:
    """Make a model directory, or mend it; what is in the way is set aside. `training` is what goes
    on there, None where it is complete.
    """
    if found.aside:
        set_aside(out, found.aside)
    if found.lost:
        how = (
            "made again from the checkpoint"
            if found.rebuilt
            else "the next validation that is better than the best so far writes them"
        )
        print(f"{found.lost}; {how}", flush=True)
        (Path(out) / WEIGHTS).unlink(missing_ok=True)
    if found.complete and is_prepared(out, settings, subword):
        return
    if found.complete:
        print(f"{out}: {CONFIG} or subword was damaged or changed; written again", flush=True)
    lm = training.lm if training else LanguageModel(settings, subword.size, words=subword.words)
    prepare(out, settings, subword, machine_facts(device), describe_model(lm, subword))


def set_aside(out, why: str) -> None:
    """Move a model directory out of the way under the first free number."""
    number = next(n for n in range(1, 10_000) if not Path(f"{out}.{n}").exists())
    shutil.move(out, f"{out}.{number}")
    print(
        f"{why}; it is kept as {out}.{number}, and training starts from the beginning", flush=True
    )


class Training:
    """The state of one training and the steps that change it."""

    def __init__(
        self,
        settings: Settings,
        train: Corpus,
        valid: Corpus,
        out,
        device: torch.device,
        fingerprint: str,
        world: World,
    ):
        self.settings, self.out, self.device, self.fingerprint, self.world = (
            settings,
            out,
            device,
            fingerprint,
            world,
        )
        self.subword, words = train.subword, train.subword.words
        torch.manual_seed(settings.seed)
        objective = OBJECTIVES[settings.objective](words)
        counts = target_counts(
            objective, train, words.size if isinstance(objective, TwoWay) else self.subword.size
        )
        self.lm = LanguageModel(settings, self.subword.size, counts, words).to(device)
        self.optimiser = build_optimiser(self.lm, settings.optim)
        # all processes draw the same noise, but not the same dropout
        self.noise = self.lm.output.generator = torch.Generator() if world.size > 1 else None
        self.train, self.valid = self.feed(train, settings.seed), self.feed(valid, None)
        self.sentences = len(train)
        self.per_epoch = self.train.per_epoch
        self.total = settings.steps or settings.epochs * self.per_epoch
        self.valid_every = settings.valid_every or self.per_epoch
        self.progress = Progress()
        self.terminated = False

    def feed(self, corpus: Corpus, seed: int | None) -> Sentences | Streams:
        """What the batches of a corpus come from; `seed` None: those of validation."""
        if self.settings.batch.streams:
            return Streams(corpus, self.settings.batch, seed, self.world)
        return Sentences(
            corpus,
            self.settings.batch,
            VALIDATION_SEED if seed is None else seed,
            self.world,
            self.lm,
        )

    def run(self, found: Found) -> Progress:
        """Train to the end, or until patience ends or SIGTERM comes."""
        if resume := found.progress is not None:
            saved = Saved(self.optimiser)
            self.progress = load_training(self.out, self.lm, saved)
            self.train.resume(saved.carried, self.device)
            if found.rebuilt and self.world.first:
                self.save_best()
        self.log = (
            Log(self.out, self.progress.step, self.total, Path(self.out).name)
            if self.world.first
            else Silence()
        )
        self.log.say(self.describe(resume))
        former = signal.signal(signal.SIGTERM, self.terminate)
        try:
            self.steps()
        finally:
            signal.signal(signal.SIGTERM, former)
            self.log.close()
        self.world.agree(self.check_weights if self.world.first else bool)
        return self.progress

    def check_weights(self) -> None:
        """UserError where the best weights were lost on the way, and none were better
        afterwards.
        """
        if not (Path(self.out) / WEIGHTS).exists():
            raise UserError(
                f"{self.out}/{WEIGHTS}: the best weights, of step {self.progress.best_step}, were"
                " lost while this training was stopped; run the same command again, it trains from"
                " the beginning"
            )

    def describe(self, resume: bool) -> str:
        """One line that says what is trained on what."""
        parameters = sum(p.numel() for p in self.lm.parameters())
        verb = f"resuming at step {self.progress.step}" if resume else "starting"
        batch, trunk = self.settings.batch, self.lm.trunk
        told = f", {told}" if (told := trunk.describe()) else ""
        streams = f" in {batch.streams} streams of {batch.unroll} a step" if batch.streams else ""
        return (
            f"{verb}: {self.settings.model}/{self.settings.objective}/{self.settings.criterion},"
            f" {parameters:,} parameters{told}, {self.sentences:,} sentences{streams},"
            f" {self.total:,} steps of {self.per_epoch:,} an epoch, {self.settings.precision} on"
            f" {self.device}{f' by {self.world.size} processes' if self.world.size > 1 else ''}"
        )

    def terminate(self, *_) -> None:
        """Note SIGTERM; the step under way is finished first."""
        self.terminated = True

    def steps(self) -> None:
        """The loop."""
        progress = self.progress
        losses, count, begin = [], 0, time.perf_counter()
        while not progress.done:
            batch = self.train.at(progress.step)
            loss, n = self.step(batch)
            losses, count = [*losses, loss], count + n
            progress.step += 1
            progress.tokens += self.train.tokens(batch)
            self.log.advance()
            stopping = self.world.any(self.terminated)  # all stop after the same step
            due = {name: self.due(every) for name, every in self.intervals()}
            if due["log"] or due["valid"] or due["save"] or stopping:
                values = torch.stack(losses).tolist()  # waits for the device
                progress.seconds += time.perf_counter() - begin
                self.report(values, count)
                if due["valid"]:
                    self.validate()
                if due["valid"] or due["save"] or stopping:
                    self.save()
                # time spent is that of training steps
                losses, count, begin = [], 0, time.perf_counter()
            if stopping and not progress.done:
                raise Stopped(
                    f"{self.out}: stopped by SIGTERM at step {progress.step}, saved; the same"
                    " command goes on from there"
                )

    def save(self) -> None:
        """Write all that a continuation needs."""
        saved = Saved(self.optimiser, self.train.saved())
        if self.world.first:
            save_training(self.out, self.lm, saved, self.progress, self.fingerprint)

    def save_best(self) -> None:
        """Write the weights, the best so far."""
        said = {
            "step": self.progress.step,
            "valid_loss": self.progress.best,
            "fingerprint": self.fingerprint,
        }
        save_weights(self.out, self.lm, **said)

    def intervals(self):
        """What is done every so many steps."""
        return (
            ("log", self.settings.log_every),
            ("valid", self.valid_every),
            ("save", self.settings.checkpoint_every),
        )

    def due(self, every: int) -> bool:
        """Whether something done every so many steps, and at the end, is due."""
        return self.progress.step % every == 0 or self.progress.step == self.total

    def step(self, batch) -> tuple[torch.Tensor, int]:
        """One update; returns the summed loss (on the device) and the number of targets, both over
        all processes.
        """
        step, settings, world = self.progress.step, self.settings, self.world
        # dropout, as a function of the step alone
        torch.manual_seed(hash_seed(settings.seed, step, *[world.rank] * (world.rank > 0)))
        if self.noise is not None:
            self.noise.manual_seed(hash_seed(settings.seed, step))
        generator = np.random.default_rng([settings.seed, step, 1])
        self.lm.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings.optim, step, self.total, self.progress.shrunk)
        self.optimiser.zero_grad(set_to_none=True)
        with autocast(self.device, settings.precision):
            loss, own = self.train.loss(self.lm, batch, generator, self.device)
        count = world.sum(own)
        if own:
            (loss / count).backward()
        world.add_gradients(self.lm.parameters(), self.lm.sparse_parameters())
        loss = world.total(loss.detach())
        if settings.optim.clip:
            clip_gradients(self.lm.parameters(), settings.optim.clip)
        if self.device.type == "cpu" and not math.isfinite(loss.item()):
            self.refuse(step)
        self.optimiser.step()
        return loss, count

    def refuse(self, step: int) -> None:
        """Stop on a loss that is not finite; on a GPU this is noticed when losses are next read,
        before anything is saved.
        """
        epoch, index = divmod(step, self.per_epoch)
        raise self.world.error(
            f"{self.out}: the loss is not finite at step {step + 1} (batch {index + 1} of epoch"
            f" {epoch + 1}: {self.train.place(step)} of the training corpus); lower optim.lr or"
            " optim.clip, or use precision=float32"
        )

    def report(self, values: list[float], count: int) -> None:
        """Log the mean training loss since the last report."""
        for back, value in enumerate(reversed(values)):
            if not math.isfinite(value):
                self.refuse(self.progress.step - 1 - back)
        progress, loss = self.progress, math.fsum(values) / count
        epoch, lr = (progress.step - 1) // self.per_epoch + 1, self.optimiser.param_groups[0]["lr"]
        rate = progress.tokens / max(progress.seconds, 1e-9)
        self.log.metrics(
            f"epoch {epoch} loss {loss:.4f} lr {lr:.2e} {rate:,.0f} tokens/s",
            step=progress.step, epoch=epoch, tokens=progress.tokens, seconds=progress.seconds,
            train_loss=loss, lr=lr,
        )  # fmt: skip

    def validate(self) -> None:
        """Measure the validation loss, keep the best weights, and decide whether training is
        done.
        """
        progress, loss = self.progress, self.validation_loss()
        if not math.isfinite(loss):
            raise self.world.error(
                f"{self.out}: the validation loss is {loss} at step {progress.step}; lower optim.lr"
                " or optim.clip, or use precision=float32"
            )
        better = progress.best is None or loss < progress.best
        if better:
            progress.best, progress.best_step = loss, progress.step
            if self.world.first:
                self.save_best()
        progress.worse = 0 if better else progress.worse + 1
        optim = self.settings.optim
        progress.shrunk += not better and optim.decay == "plateau"
        self.log.metrics(
            f"validation loss {loss:.4f}{' (best)' if better else ''}",
            step=progress.step,
            tokens=progress.tokens,
            valid_loss=loss,
        )
        impatient = self.settings.patience is not None and progress.worse >= self.settings.patience
        progress.done = (
            progress.step >= self.total
            or impatient
            or shrunk_rate(optim, progress.shrunk) < optim.min_lr
        )

    @torch.inference_mode()
    def validation_loss(self) -> float:
        """The mean loss in nats a target over the validation corpus."""
        self.lm.eval()
        total, count = 0.0, 0
        generator = np.random.default_rng(VALIDATION_SEED)
        for step in range(self.valid.per_epoch):
            with autocast(self.device, self.settings.precision):
                loss, n = self.valid.loss(self.lm, self.valid.at(step), generator, self.device)
            total, count = total + float(loss), count + n
        return self.world.sum(total) / self.world.sum(count)


def hash_seed(*numbers: int) -> int:
    """A seed for torch from several numbers: (seed, step) or (seed, step, process)."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
