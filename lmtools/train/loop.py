"""The one training loop, for every model, objective and criterion.

Every random choice is a function of (seed, epoch) or (seed, step): a training that was killed and resumed makes the same weights,
byte for byte on a CPU, as one that never stopped.
"""

import dataclasses
import hashlib
import json
import math
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import torch

from lmtools.checkpoint import (
    WEIGHTS,
    Progress,
    load_training,
    prepare,
    save_training,
    save_weights,
    training_metadata,
)
from lmtools.corpus import Corpus
from lmtools.errors import UserError
from lmtools.files import sha256
from lmtools.lm import LanguageModel, autocast, choose_device, resolve_precision
from lmtools.objectives import OBJECTIVES, target_counts
from lmtools.settings import Settings
from lmtools.train.batches import Segments, plan
from lmtools.train.log import Log
from lmtools.train.optim import build_optimiser, clip_gradients, learning_rate

VALIDATION_SEED = 0  # the masked objective masks the same validation tokens every time


class Stopped(Exception):
    """SIGTERM came; the state is saved."""


def train(settings: Settings, train_bin, valid_bin, out, device: str = "auto") -> Progress:
    """Train into the model directory `out`, going on from what a killed run left there; returns at once when it is complete.

    A directory that holds a training of other settings or data is set aside (`out.1`, `out.2` ...), never overwritten.
    """
    chosen = choose_device(device)
    settings = dataclasses.replace(settings, precision=resolve_precision(settings.precision, chosen))
    corpora = [Corpus.open(path) for path in (train_bin, valid_bin)]
    subword = corpora[0].subword
    corpora[1].check(subword)
    fingerprint = identify(settings, subword, train_bin, valid_bin)
    previous = training_metadata(out)
    same = bool(previous) and previous["fingerprint"] == fingerprint
    if same and previous["progress"]["done"] and (Path(out) / WEIGHTS).exists():
        return Progress(**previous["progress"])
    training = Training(settings, *corpora, subword.size, out, chosen, fingerprint)  # refuses what does not fit before anything is written
    if previous and not same:
        set_aside(out)
    prepare(out, settings, subword)
    return training.run(resume=same)


def identify(settings: Settings, subword, *corpora) -> str:
    """A hash of all that determines the weights."""
    parts = [dataclasses.asdict(settings), subword.hash, *(sha256(path) for path in corpora)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def set_aside(out) -> None:
    """Move a model directory out of the way under the first free number."""
    number = next(n for n in range(1, 10_000) if not Path(f"{out}.{n}").exists())
    shutil.move(out, f"{out}.{number}")
    print(f"{out}: held a training of other settings or data; it is kept as {out}.{number}", flush=True)


class Training:
    """The state of one training and the steps that change it."""

    def __init__(self, settings: Settings, train: Corpus, valid: Corpus, size: int, out, device: torch.device, fingerprint: str):
        self.settings, self.out, self.device, self.fingerprint = settings, out, device, fingerprint
        torch.manual_seed(settings.seed)
        counts = target_counts(OBJECTIVES[settings.objective], train, size)
        self.lm = LanguageModel(settings, size, counts).to(device)
        self.optimiser = build_optimiser(self.lm, settings.optim)
        self.train, self.valid = (Segments(corpus, self.lm.longest) for corpus in (train, valid))
        for part, name in ((self.train, "training"), (self.valid, "validation")):
            if not len(part):
                raise UserError(f"{out}: the {name} corpus has no sentences; give text")
        self.per_epoch = len(self.epoch(0))
        self.total = settings.steps or settings.epochs * self.per_epoch
        self.valid_every = settings.valid_every or self.per_epoch
        self.progress = Progress()
        self.terminated = False

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches of epoch `number`."""
        return plan(self.train.lengths, self.settings.batch, self.lm.objective.boundary, self.settings.seed, number)

    def run(self, resume: bool) -> Progress:
        """Train to the end, or until patience ends or SIGTERM comes."""
        if resume:
            self.progress = load_training(self.out, self.lm, self.optimiser)
        self.log = Log(self.out, self.progress.step, self.total, Path(self.out).name)
        self.log.say(self.describe(resume))
        former = signal.signal(signal.SIGTERM, self.terminate)
        try:
            self.steps()
        finally:
            signal.signal(signal.SIGTERM, former)
            self.log.close()
        return self.progress

    def describe(self, resume: bool) -> str:
        """One line that says what is trained on what."""
        parameters = sum(p.numel() for p in self.lm.parameters())
        verb = f"resuming at step {self.progress.step}" if resume else "starting"
        return (
            f"{verb}: {self.settings.model}/{self.settings.objective}/{self.settings.criterion}, {parameters:,} parameters, "
            f"{len(self.train):,} sentences, {self.total:,} steps of {self.per_epoch:,} an epoch, "
            f"{self.settings.precision} on {self.device}"
        )

    def terminate(self, *_) -> None:
        """Note SIGTERM; the step under way is finished first."""
        self.terminated = True

    def steps(self) -> None:
        """The loop."""
        progress, order, epoch = self.progress, [], -1
        losses, count, begin = [], 0, time.perf_counter()
        while not progress.done:
            if epoch != progress.step // self.per_epoch:
                epoch = progress.step // self.per_epoch
                order = self.epoch(epoch)
            indices = order[progress.step % self.per_epoch]
            loss, n = self.step(indices)
            losses, count = [*losses, loss], count + n
            progress.step += 1
            progress.tokens += int(self.train.lengths[indices].sum())
            self.log.advance()
            due = {name: self.due(every) for name, every in self.intervals()}
            if due["log"] or due["valid"] or due["save"] or self.terminated:
                values = torch.stack(losses).tolist()  # waits for the device
                progress.seconds += time.perf_counter() - begin
                self.report(values, count, epoch)
                if due["valid"]:
                    self.validate()
                if due["valid"] or due["save"] or self.terminated:
                    save_training(self.out, self.lm, self.optimiser, progress, self.fingerprint)
                losses, count, begin = [], 0, time.perf_counter()  # time spent is that of training steps
            if self.terminated and not progress.done:
                raise Stopped(f"{self.out}: stopped by SIGTERM at step {progress.step}, saved; the same command goes on from there")

    def intervals(self):
        """What is done every so many steps."""
        return ("log", self.settings.log_every), ("valid", self.valid_every), ("save", self.settings.checkpoint_every)

    def due(self, every: int) -> bool:
        """Whether something done every so many steps, and at the end, is due."""
        return self.progress.step % every == 0 or self.progress.step == self.total

    def step(self, indices: np.ndarray) -> tuple[torch.Tensor, int]:
        """One update; returns the summed loss (on the device) and the number of targets."""
        step, settings = self.progress.step, self.settings
        torch.manual_seed(hash_seed(settings.seed, step))  # dropout, as a function of the step alone
        generator = np.random.default_rng([settings.seed, step, 1])
        self.lm.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings.optim, step, self.total)
        examples = self.lm.objective.training(self.train.batch(indices), generator, self.lm.size).to(self.device)
        self.optimiser.zero_grad(set_to_none=True)
        with autocast(self.device, settings.precision):
            loss, count = self.lm(examples)
        (loss / count).backward()
        if settings.optim.clip:
            clip_gradients(self.lm.parameters(), settings.optim.clip)
        if self.device.type == "cpu" and not math.isfinite(loss.item()):
            self.refuse(step)
        self.optimiser.step()
        return loss.detach(), count

    def refuse(self, step: int) -> None:
        """Stop on a loss that is not finite; on a GPU this is noticed when losses are next read, before anything is saved."""
        epoch, index = divmod(step, self.per_epoch)
        batch = self.epoch(epoch)[index]
        some = ", ".join(str(int(self.train.sentence[i]) + 1) for i in batch[:8])
        raise UserError(
            f"{self.out}: the loss is not finite at step {step + 1} (batch {index + 1} of epoch {epoch + 1}: sentences {some}"
            f"{' ...' if len(batch) > 8 else ''} of the training corpus); lower optim.lr or optim.clip, or use precision=float32"
        )

    def report(self, values: list[float], count: int, epoch: int) -> None:
        """Log the mean training loss since the last report."""
        for back, value in enumerate(reversed(values)):
            if not math.isfinite(value):
                self.refuse(self.progress.step - 1 - back)
        progress, loss = self.progress, math.fsum(values) / count
        rate = progress.tokens / max(progress.seconds, 1e-9)
        self.log.metrics(
            f"epoch {epoch + 1} loss {loss:.4f} lr {self.optimiser.param_groups[0]['lr']:.2e} {rate:,.0f} tokens/s",
            step=progress.step, epoch=epoch + 1, tokens=progress.tokens, seconds=progress.seconds, train_loss=loss,
            lr=self.optimiser.param_groups[0]["lr"],
        )  # fmt: skip

    def validate(self) -> None:
        """Measure the validation loss, keep the best weights, and decide whether training is done."""
        progress, loss = self.progress, self.validation_loss()
        better = progress.best is None or loss < progress.best
        if better:
            save_weights(self.out, self.lm, step=progress.step, valid_loss=loss)
            progress.best = loss
        progress.worse = 0 if better else progress.worse + 1
        self.log.metrics(
            f"validation loss {loss:.4f}{' (best)' if better else ''}", step=progress.step, tokens=progress.tokens, valid_loss=loss
        )
        progress.done = progress.step >= self.total or (self.settings.patience is not None and progress.worse >= self.settings.patience)

    @torch.inference_mode()
    def validation_loss(self) -> float:
        """The mean loss in nats a target over the validation corpus."""
        self.lm.eval()
        total, count = 0.0, 0
        generator = np.random.default_rng(VALIDATION_SEED)
        for indices in plan(self.valid.lengths, self.settings.batch, self.lm.objective.boundary, VALIDATION_SEED, 0):
            examples = self.lm.objective.training(self.valid.batch(indices), generator, self.lm.size).to(self.device)
            with autocast(self.device, self.settings.precision):
                loss, n = self.lm(examples)
            total, count = total + float(loss), count + n
        return total / count


def hash_seed(seed: int, step: int) -> int:
    """A seed for torch from (seed, step)."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> 1)
