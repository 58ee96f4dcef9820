"""Speed of language models that read a text and give the log-probabilities of its words: throughput
and responsiveness (Table 4 of the GCNN paper).

Throughput is of many sequences in one batch: the paper's 750 of 20 tokens, 15,000 at once.
Responsiveness is what somebody waits for: one sentence at a time. `contiguous` is the paper's
responsiveness: as many tokens as one sequence. All of them end with the log-probability of each
given word, as scoring a text does; `..._hidden` is without head and output layer. The models take
turns.

The target: the published GCNN-8 Bottleneck is at least 20 times as responsive as LSTM-2048 where
the hardware allows (a GPU).
"""

import copy
import itertools
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lmtools.base.computing import Computing
from lmtools.base.config import from_yaml
from lmtools.base.errors import UserError
from lmtools.models.device import choose_device
from lmtools.models.outputs.noise import LogUniform
from lmtools.models.settings import Settings
from lmtools.score.base import Scorer
from lmtools.score.load import load
from lmtools.score.mixture import MixtureScorer
from lmtools.score.neural import NeuralScorer
from lmtools.score.ngram import NgramScorer
from lmtools.text.blocks import read_text
from lmtools.text.subword import SPECIALS
from lmtools.text.subword.lists import Word
from lmtools.text.subword.spelled import Spelled
from lmtools.version import __version__
from measures.machine import describe_machine, stopwatch
from measures.score import random_scorer

CONF = Path(__file__).parents[2] / "conf"
PUBLISHED = ("lstm-2048", "gcnn-9", "gcnn-8b")  # Table 4's models
# the One Billion Word benchmark's 793,471 words, of which three are specials of ours, and two more
# specials
IDS = 793_473
TASKS = ("throughput", "responsiveness", "contiguous")
HIDDEN = "_hidden"
REFERENCE = "lstm"  # the model that others are compared with


@dataclass(frozen=True)
class Sizes:
    """Sizes of the input: `batch` sequences of `length` tokens, and one of `contiguous`; the end of
    a sequence is its last token.
    """

    batch: int
    length: int
    contiguous: int

    @classmethod
    def usual(cls, device: torch.device, batch=None, length=20, contiguous=None) -> "Sizes":
        """Return the paper's, or less on a CPU, which would take minutes; what is given is kept."""
        usual = (750, 15_000) if device.type == "cuda" else (50, 2_000)
        return cls(batch or usual[0], length, contiguous or usual[1])


def published_models() -> dict[str, Settings]:
    """Return the settings of the published models by name."""
    return {name: from_yaml(Settings, CONF / f"{name}.yaml") for name in PUBLISHED}


def read_settings(paths: Mapping[str, str]) -> dict[str, Settings]:
    """Return the settings of models by name; UserError for a model that spells its words."""
    every = {name: from_yaml(Settings, path) for name, path in paths.items()}
    for name, settings in every.items():
        if settings.objective == "two-way":
            raise UserError(
                f"{paths[name]}: a two-way model is measured with its vocabulary; give a trained"
                " one by --lm NAME=DIR"
            )
        if settings.objective == "translation":
            raise UserError(f"{paths[name]}: a translation model reads pairs; give another one")
    return every


class Reader:
    """A model and what it is given: the sequences of `Sizes` as its `prepare` makes them, from
    words of a text or drawn by Zipf's law.
    """

    def __init__(self, name: str, scorer: Scorer, sizes: Sizes, text: Sequence[str] | None):
        self.scorer = scorer
        self.neural = isinstance(scorer, NeuralScorer)
        self.device = torch.device("cpu") if isinstance(scorer, NgramScorer) else scorer.device
        lengths = [*[sizes.length] * sizes.batch, sizes.contiguous]
        # the last token is the end
        *batch, contiguous = self.sequences(name, [length - 1 for length in lengths], text)
        tokens = sizes.length * sizes.batch, sizes.length, sizes.contiguous
        calls = [batch], [[sentence] for sentence in batch], [[contiguous]]
        self.tokens = dict(zip(TASKS, tokens, strict=True))
        self.calls = dict(zip(TASKS, calls, strict=True))
        self.next = {task: itertools.cycle(calls) for task, calls in self.calls.items()}

    def sequences(
        self, name: str, lengths: Sequence[int], text: Sequence[str] | None
    ) -> list[tuple]:
        """Return sequences for the model, of the given numbers of words."""
        known = list_words(self.scorer)
        if text is not None:
            words = itertools.cycle(text)
        elif known is not None:
            words = (known[i] for i in draw_zipf(len(known), sum(lengths)))
        elif self.neural:
            ids = iter(len(SPECIALS) + draw_zipf(self.scorer.lm.size - len(SPECIALS), sum(lengths)))
            return [tuple(map(int, itertools.islice(ids, length))) for length in lengths]
        else:
            raise UserError(f"--lm {name}: lists no words to draw from; give a text by --text")
        return self.scorer.prepare([" ".join(itertools.islice(words, n)) for n in lengths])

    def tasks(self) -> list[str]:
        """Return the names of the tasks that can be measured: n-grams have no hidden states."""
        return [task + kind for kind in ("", HIDDEN)[: 1 + self.neural] for task in TASKS]

    def read(self, task: str, sentences: list[tuple]) -> None:
        """Compute the log-probabilities of all words of the sentences, or only the states that they
        would be of.
        """
        if task.endswith(HIDDEN):
            self.scorer.compute(sentences, lambda states, targets: targets)
        else:
            self.scorer.log_probs(sentences)

    def turn(self, task: str, least: float) -> float:
        """Return the tokens a second of as many calls as take `least` seconds, one at least."""
        kind = task.removesuffix(HIDDEN)
        spent, calls = 0.0, 0
        while spent < least or not calls:
            sentences = next(self.next[kind])
            spent += stopwatch(lambda some=sentences: self.read(task, some), self.device)
            calls += 1
        return self.tokens[kind] * calls / spent

    def size(self) -> dict:
        """Return parameters, and multiply-adds a token of the whole batch as the model is defined;
        None: not counted.
        """
        if not self.neural:
            return {"parameters": None, "flops": None, "flops_hidden": None}
        tokens, (batch,) = self.tokens[TASKS[0]], self.calls[TASKS[0]]
        # In bfloat16, as a CPU reads long sequences in float32 by convolutions of fewer
        # multiplications than defined; and without rows that nothing is read from.
        measured, self.scorer = self.scorer, copy.copy(self.scorer)
        self.scorer.precision, self.scorer.ragged = "bfloat16", False
        counts = [
            multiply_adds(lambda task=task: self.read(task, batch)) / tokens
            for task in (TASKS[0], TASKS[0] + HIDDEN)
        ]
        self.scorer = measured
        parameters = self.scorer.parameters
        return {"parameters": parameters, "flops": counts[0], "flops_hidden": counts[1]}


def list_words(scorer: Scorer) -> list[str] | None:
    """Return the words of a vocabulary that lists them, the most frequent first: what it is made
    of, or what it spells and predicts.
    """
    words = scorer.subword
    if isinstance(words, Spelled):
        words = words.words.words
    return list(words.vocabulary[len(SPECIALS) :]) if isinstance(words, Word) else None


def draw_zipf(size: int, count: int) -> np.ndarray:
    """Return `count` log-uniform ranks below `size`, the same for the same numbers."""
    return LogUniform(np.ones(size), ()).draw(count, torch.Generator().manual_seed(count))


def multiply_adds(function) -> int:
    """Count the multiply-adds of all matrix products and convolutions in a call, counted as torch
    carries them out.
    """
    with warnings.catch_warnings(), FlopCounterMode(display=False) as counter:
        warnings.simplefilter("ignore")  # torch's own, of settings that it puts back
        # Without kernels that do a whole LSTM or a whole attention in one call their products are
        # seen one by one.
        with (
            torch.backends.mkldnn.flags(enabled=False),
            torch.backends.cudnn.flags(enabled=False),
            sdpa_kernel(SDPBackend.MATH),
        ):
            function()
    return counter.get_total_flops() // 2


def words_of(path, least: int) -> list[str]:
    """Return the first `least` words of a text; fewer where it has no more, UserError where it has
    none.
    """
    every = (word for _, line in read_text(path) for word in line.split())
    words = list(itertools.islice(every, least))
    if not words:
        raise UserError(f"{path}:1: no words in the text; give one with some")
    return words


def load_scorers(
    settings: Mapping[str, Settings], lms: Mapping[str, str], size: int, computing: Computing
) -> dict[str, Scorer]:
    """Load random models by settings and trained ones by directories; a trained one takes the
    place of a random one of its name.
    """
    random = {
        name: random_scorer(model, size, computing)
        for name, model in settings.items()
        if name not in lms
    }
    trained = {name: load(lm, computing) for name, lm in lms.items()}
    for name, scorer in trained.items():
        if isinstance(scorer, MixtureScorer):
            raise UserError(f"--lm {name}: a mixture; measure its models, or take bench lists")
    return {name: (random | trained)[name] for name in dict.fromkeys([*settings, *lms])}


def bench_lm(
    scorers: Mapping[str, Scorer], sizes: Sizes, repeats: int, least: float, device: str, text=None
) -> dict:
    """Measure everything of `bench.py lm`: a row a model; `text` is the file that the words
    come from.
    """
    words = None if text is None else words_of(text, sizes.batch * sizes.length + sizes.contiguous)
    readers = {name: Reader(name, scorer, sizes, words) for name, scorer in scorers.items()}
    values = {(name, task): [] for name, reader in readers.items() for task in reader.tasks()}
    tasks = [task + kind for kind in ("", HIDDEN) for task in TASKS]
    for turn in range(repeats + 1):
        for task, (name, reader) in itertools.product(tasks, readers.items()):
            if (name, task) in values:
                speed = reader.turn(task, least if turn else 0.0)
                values[name, task] += [speed] if turn else []  # the first is a warm-up
    chosen = choose_device(device)
    return {
        "rows": [make_row(name, reader, values, sizes) for name, reader in readers.items()],
        **asdict(sizes), "tokens": sizes.batch * sizes.length,
        "text": None if text is None else str(text), "repeats": repeats,
        "least_seconds": least, "machine": describe_machine(chosen),
        "threads": torch.get_num_threads(), "device": chosen.type,
        "precision": next((r.scorer.precision for r in readers.values() if r.neural), "float32"),
        "versions": {"lmtools": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }  # fmt: skip


def make_row(name: str, reader: Reader, values: Mapping, sizes: Sizes) -> dict:
    """Return the figures of one model as JSON; None for those it does not have."""
    tasks = [task + kind for kind in ("", HIDDEN) for task in TASKS]
    speeds = {task: values.get((name, task)) for task in tasks}
    model = reader.scorer.lm.settings.model if reader.neural else reader.scorer.signature["lm"]
    return {
        "name": name, "model": model, **reader.size(),
        **{task: speed and {"median": statistics.median(speed), "values": speed} for task,
        speed in speeds.items()},
        "batch": sizes.batch, "length": sizes.length, "contiguous_length": sizes.contiguous,
    }  # fmt: skip


def format_table(figures: Mapping) -> Iterator[str]:
    """Yield the table: tokens a second, and how many times as many as the first LSTM (else the
    first model) reads.
    """
    rows = figures["rows"]
    reference = next((row for row in rows if row["model"] == REFERENCE), rows[0])
    yield (
        f"{figures['machine']}; {figures['threads']} thread(s), {figures['precision']}, median of"
        f" {figures['repeats']}"
    )
    yield (
        f"tokens a second: throughput of {figures['batch']:,} sequences of {figures['length']} at"
        f" once, responsiveness of one at a time, contiguous: one of {figures['contiguous']:,}; x:"
        f" times {reference['name']}"
    )
    yield f"{'model':<14}{'parameters':>14}{'MMAC/token':>12}" + "".join(
        f"{task:>16}{'x':>8}" for task in TASKS
    )
    for row in rows:
        yield from (
            format_row(row, kind, reference) for kind in ("", HIDDEN) if row[TASKS[0] + kind]
        )


def format_row(row: Mapping, kind: str, reference: Mapping) -> str:
    """Return one line of the table: with the output layer, or of hidden states alone."""
    name = f"  {kind.strip('_')}" if kind else row["name"]
    size = f"{row['parameters']:,}" if row["parameters"] and not kind else ""
    work = "" if row["flops" + kind] is None else f"{row['flops' + kind] / 1e6:,.1f}"
    return f"{name:<14}{size:>14}{work:>12}" + "".join(
        format_speed(row[task + kind], reference[task + kind]) for task in TASKS
    )


def format_speed(speed: Mapping, base: Mapping | None) -> str:
    """Return a speed and its ratio."""
    ratio = f"{speed['median'] / base['median']:.3g}" if base else ""
    return f"{speed['median']:>16,.1f}{ratio:>8}"
