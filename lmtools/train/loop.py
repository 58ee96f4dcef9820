"""The one training loop, for every model, objective and criterion.

Every random choice is a function of (seed, epoch) or (seed, step): a training that was killed and
resumed makes the same weights, byte for byte on a CPU of one kind with one number of threads, as
one that never stopped. Threads change LayerNorm's gradients (sums over rows), instruction sets
the forward pass of attention; a small model's large learning rate carries that into its results.
"""

import contextlib
import math
import signal
import time

import numpy as np
import torch

from lmtools.base.atomic import hold_lock
from lmtools.base.errors import UserError
from lmtools.base.specs import WEIGHTS
from lmtools.models.checkpoint import Progress, load_training, save_training, save_weights
from lmtools.models.device import autocast
from lmtools.models.objectives import OBJECTIVES, TwoWay, count_targets
from lmtools.models.settings import Settings
from lmtools.text.corpus import Corpus
from lmtools.text.subword.spelled import SampledCuts
from lmtools.train.batches import Sentences
from lmtools.train.directory import (
    DirectoryState,
    TrainingPlan,
    inspect_directory,
    keep_weights,
    make_room,
)
from lmtools.train.lists import ListBatches, ListFile
from lmtools.train.log import Log, NullLog, describe_training, list_doubts
from lmtools.train.optim import build_optimiser, clip_gradients, learning_rate, shrunk_rate
from lmtools.train.parallel import World, hash_seed, join_processes
from lmtools.train.start import choose_parameters, start_from
from lmtools.train.validation import VALIDATION_SEED, Validation, entropy


class Stopped(Exception):
    """Stop of a training by SIGTERM; its state is saved."""


def train(
    settings: Settings,
    train_bin,
    valid_bin,
    out,
    device: str = "auto",
    init=None,
    also=None,
    events=None,
) -> Progress:
    """Train into the model directory `out`, going on from what a killed run left there; returns at
    once when it is complete and undamaged. `init`: a model directory whose weights it starts from;
    `also`: corpora by name whose loss is logged at each validation, and decides nothing; `events`:
    a directory for TensorBoard's event files.

    A directory that holds a training of other settings or data, or a damaged one that cannot be
    mended exactly, is set aside (`out.1`, `out.2` ...), never overwritten. UserError where another
    process trains into it. As one of several processes of torchrun it trains together with the
    others; how many they are may change when a training goes on.
    """
    with join_processes(device) as world, contextlib.ExitStack() as held:
        world.agree(lambda: held.enter_context(hold_lock(out)) if world.first else None)
        more = {"out": out, "init": init, "also": also}
        plan = world.agree(
            lambda: TrainingPlan.read(
                settings, train_bin, valid_bin, device=world.device(device), **more
            ).with_events(events)
        )
        directory_state = world.agree(lambda: inspect_directory(plan))
        training = None
        if not directory_state.complete:  # refuses what does not fit before anything is written
            training = world.agree(lambda: Training(plan, world))
        lm = training and training.lm
        world.agree(lambda: make_room(plan, directory_state, lm) if world.first else None)
        return training.run(directory_state) if training else directory_state.progress


class Training:
    """The state of one training and the steps that change it."""

    def __init__(self, plan: TrainingPlan, world: World):
        self.plan, self.world = plan, world
        self.settings, self.out, self.device = plan.settings, plan.out, plan.device
        settings, subword, words = plan.settings, plan.train.subword, plan.train.subword.words
        torch.manual_seed(settings.seed)
        objective, counts = OBJECTIVES[settings.objective](words), None
        ids = words.size if isinstance(objective, TwoWay) else subword.size
        if not settings.lists.loss:
            counts = count_targets(objective, plan.train, ids)
        lm = plan.make_lm(counts)
        self.started = start_from(plan.init, lm, subword) if plan.init else ""
        self.lm = lm.to(self.device)
        choose_parameters(self.lm, settings)
        self.optimiser = build_optimiser(self.lm, settings.optim)
        # all processes and parts of a batch draw the same noise, but not the same dropout
        shared = world.size > 1 or settings.accumulate > 1
        self.noise = self.lm.output.generator = torch.Generator() if shared else None
        self.train = self.feed(plan.train, settings.seed)
        if settings.cut_alpha is not None:
            self.train.cuts = SampledCuts(subword, settings.cut_alpha)
        chance = math.inf if counts is None else entropy(counts)
        self.validation = Validation(plan, self.lm, world, feed=self.feed, chance=chance)
        self.total = settings.steps or settings.epochs * self.train.per_epoch
        self.progress = Progress()
        self.log: Log | NullLog = NullLog()
        self.terminated = False

    def feed(
        self, corpus: Corpus | ListFile, seed: int = VALIDATION_SEED
    ) -> Sentences | ListBatches:
        if isinstance(corpus, ListFile):
            return ListBatches(corpus, self.plan, seed, world=self.world, lm=self.lm)
        return Sentences(corpus, self.settings.step_batch, seed, world=self.world, lm=self.lm)

    def run(self, directory_state: DirectoryState) -> Progress:
        """Train to the end, or until patience or gains end or SIGTERM comes."""
        if resume := directory_state.progress is not None:
            self.progress = load_training(self.out, self.lm, self.optimiser)
            if directory_state.rebuilt and self.world.first:
                self.save_best()
        if self.world.first:
            step, events = self.progress.step, self.plan.events
            self.log = Log(self.out, step, self.total, events)
        if self.started and not resume:
            self.log.say(self.started)
        self.log.say(describe_training(self, resume))
        for line in (doubts := list(list_doubts(self))):
            self.log.say(line)
        self.validation.warned = bool(doubts)
        former = signal.signal(signal.SIGTERM, self.terminate)
        try:
            if self.started and not resume:
                self.validate()  # the weights may be the best already
            self.steps()
        finally:
            signal.signal(signal.SIGTERM, former)
            self.log.close()
        self.world.agree(self.check_weights if self.world.first else bool)
        return self.progress

    def check_weights(self) -> None:
        """Raise UserError where the best weights were lost, and none were better afterwards."""
        if not (self.out / WEIGHTS).exists():
            raise UserError(
                f"{self.out}/{WEIGHTS}: the best weights, of step"
                f" {self.progress.best_step}, were lost while this training was stopped; run the"
                " same command again, it trains from the beginning"
            )

    def terminate(self, *_) -> None:
        """Note SIGTERM; the step under way is finished first."""
        self.terminated = True

    def steps(self) -> None:
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
            every = self.settings.valid_every or self.train.per_epoch
            validating = self.due(every) or self.ended_epoch is not None
            saving = validating or stopping or self.due(self.settings.checkpoint_every)
            if saving or self.due(self.settings.log_every):
                values = torch.stack(losses).tolist()  # waits for the device
                progress.seconds += time.perf_counter() - begin
                self.report(values, count)
                if validating:
                    self.validate()
                if saving:
                    self.save()
                # time spent is that of training steps
                losses, count, begin = [], 0, time.perf_counter()
            if stopping and not progress.done:
                raise Stopped(
                    f"{self.out}: stopped by SIGTERM at step {progress.step}, saved; the same"
                    " command goes on from there"
                )

    def save(self) -> None:
        if self.world.first:
            fingerprint = self.plan.fingerprint
            save_training(self.out, self.lm, self.optimiser, self.progress, fingerprint=fingerprint)

    def save_best(self) -> None:
        step, loss, fingerprint = self.progress.step, self.progress.best, self.plan.fingerprint
        save_weights(self.out, self.lm, step=step, valid_loss=loss, fingerprint=fingerprint)

    def due(self, every: int) -> bool:
        """Return whether something done every so many steps, and at the end, is due."""
        return self.progress.step % every == 0 or self.progress.step == self.total

    @property
    def ended_epoch(self) -> int | None:
        """Return the epoch that the last step ended, where settings ask for its end."""
        epoch, rest = divmod(self.progress.step, self.train.per_epoch)
        asked = self.settings.min_gain is not None or epoch in self.settings.keep_epochs
        return epoch if asked and rest == 0 else None

    def step(self, batch) -> tuple[torch.Tensor, int]:
        """Update the weights once; return summed loss and targets, over all processes."""
        step, settings, world = self.progress.step, self.settings, self.world
        # dropout, as a function of the step alone
        torch.manual_seed(hash_seed(settings.seed, step, *[world.rank] * (world.rank > 0)))
        generator = np.random.default_rng([settings.seed, step, 1])
        self.lm.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings.optim, step, self.total, self.progress.shrunk)
        self.optimiser.zero_grad(set_to_none=True)
        parts = self.train.parts(self.lm, batch, generator)
        count = world.sum(sum(share for _, share in parts))
        losses = [self.add_gradients(part, count) for part, _ in parts]
        world.add_gradients(self.lm.parameters(), self.lm.sparse_parameters())
        loss = world.total(sum(losses, torch.zeros((), device=self.device)))
        if settings.optim.clip:
            clip_gradients(self.lm.parameters(), settings.optim.clip)
        if self.device.type == "cpu" and not math.isfinite(loss.item()):
            self.refuse(step)
        self.optimiser.step()
        return loss, count

    def add_gradients(self, part, count: int) -> torch.Tensor:
        """Add the gradients of a part of a batch of `count` targets; return its summed loss."""
        if self.noise is not None:
            self.noise.manual_seed(hash_seed(self.settings.seed, self.progress.step))
        with autocast(self.device, self.settings.precision):
            loss = self.train.loss(self.lm, part, self.device)
        (loss / count).backward()
        return loss.detach()

    def refuse(self, step: int) -> None:
        """Stop on a loss that is not finite; on a GPU when losses are next read."""
        epoch, index = divmod(step, self.train.per_epoch)
        raise self.world.error(
            f"{self.out}: the loss is not finite at step {step + 1} (batch {index + 1} of epoch"
            f" {epoch + 1}: {self.train.place(step)} of the training data); lower optim.lr or"
            " optim.clip, or use precision=float32"
        )

    def report(self, values: list[float], count: int) -> None:
        """Log the mean training loss since the last report."""
        for back, value in enumerate(reversed(values)):
            if not math.isfinite(value):
                self.refuse(self.progress.step - 1 - back)
        progress, loss = self.progress, math.fsum(values) / count
        epoch = (progress.step - 1) // self.train.per_epoch + 1
        lr = self.optimiser.param_groups[0]["lr"]
        rate = progress.tokens / max(progress.seconds, 1e-9)
        self.log.metrics(
            f"epoch {epoch} loss {loss:.4f} lr {lr:.2e} {rate:,.0f} tokens/s",
            step=progress.step, epoch=epoch, tokens=progress.tokens, seconds=progress.seconds,
            train_loss=loss, lr=lr,
        )  # fmt: skip

    def validate(self) -> None:
        """Measure the validation loss, keep the best weights, and decide whether to end."""
        progress, loss = self.progress, self.validation.loss()
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
        self.validation.report(loss, progress, better=better, log=self.log)
        if self.ended_epoch in self.settings.keep_epochs and self.world.first:
            keep_weights(self.out, self.ended_epoch)
        patience, epoch = self.settings.patience, self.ended_epoch
        converged = self.validation.converged(loss, progress, epoch, self.log)
        progress.done = (
            progress.step >= self.total
            or converged
            or (patience is not None and progress.worse >= patience)
            or shrunk_rate(optim, progress.shrunk) < optim.min_lr
        )
        if progress.done:
            self.validation.warn_idle(progress, self.log)
