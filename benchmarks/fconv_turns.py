"""Gated convolutional language models of lmtools and of fairseq-fixed (fconv_lm), trained and
evaluated in turns on the same batches.

The vocabulary is the words of the training text, sorted by frequency; sentences of like length
stand together, right-padded. Both models have layers of one width, weight normalisation, an
adaptive softmax, Nesterov momentum and clipping, and start as their authors start them. What
differs in the models: fairseq projects the lookup to the layers' width before the first layer, so
that its first layer is wider (multiply-adds a token are printed), halves the variance of each
residual sum (times sqrt(0.5)), and has no biases in the output layer. fairseq trains and is timed
by its own model, criterion, clipping and optimiser without its trainer's book-keeping; its
criterion skips the words whose place in a cluster is the padding's id, so that perplexities are of
all words, from its logits.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.models.fconv import FConvDecoder
from fairseq.models.fconv_lm import FConvLanguageModel
from fairseq.optim.nag import NAG
from fairseq.utils import clip_grad_norm_
from measures.lm import multiply_adds
from measures.machine import describe_machine, stopwatch
from torch.nn import functional as F

from lmtools.base.config import build
from lmtools.base.files import read_lines
from lmtools.models.device import autocast
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import CausalObjective, Examples, count_targets
from lmtools.models.settings import Batch, Settings
from lmtools.text import Normaliser
from lmtools.text.corpus import Corpus, binarise
from lmtools.text.subword import PAD
from lmtools.text.subword.lists import Word
from lmtools.train.batches import plan_epoch
from lmtools.train.optim import build_optimiser, clip_gradients

CPU = torch.device("cpu")


class Ours:
    """lmtools: the model, output layer, optimiser and clipping of `lmtools train`."""

    def __init__(self, args: argparse.Namespace, size: int, counts: np.ndarray, precision: str):
        torch.manual_seed(args.seed)
        self.args, self.precision = args, precision
        settings = {
            "model": "gcnn", "objective": "causal", "criterion": "adaptive",
            "output": {"cutoffs": args.cutoffs},
            "arch": {"dim": args.dim, "blocks": [f"[{args.kernel}, {args.width}] x {args.layers}"],
            "residual_scale": 0.5**0.5, **args.arch},  # fairseq's sums
            "optim": {"name": "nag", "lr": args.lr, "momentum": args.momentum, "clip": args.clip,
            "warmup": 0,
                      "decay": "none", "weight_decay": 0.0},
        }  # fmt: skip
        self.model = LanguageModel(build(Settings, settings), size, counts)
        self.optimiser = build_optimiser(self.model, self.model.settings.optim)

    def step(self, examples: Examples) -> float:
        """One update; the loss in nats a target."""
        self.optimiser.zero_grad(set_to_none=True)
        with autocast(CPU, self.precision):
            loss, count = self.model(examples)
        (loss / count).backward()
        clip_gradients(self.model.parameters(), self.args.clip)
        self.optimiser.step()
        return loss.item() / count

    @torch.inference_mode()
    def evaluate(self, examples: Examples) -> float:
        """The summed loss in nats."""
        with autocast(CPU, self.precision):
            return self.model(examples)[0].item()

    exact = evaluate

    def multiply_adds(self, examples: Examples) -> int:
        """Of evaluating a batch."""
        return multiply_adds(lambda: self.evaluate(examples))


class Words:
    """Stands for fairseq's dictionary where only its size and padding matter."""

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def pad(self) -> int:
        """The id of padding."""
        return PAD


class Fairseq:
    """fairseq's model under its criterion `adaptive_loss`."""

    def __init__(self, args: argparse.Namespace, size: int):
        torch.manual_seed(args.seed)
        self.args, words = args, Words(size)
        decoder = FConvDecoder(
            words, embed_dim=args.dim, out_embed_dim=args.dim,
            convolutions=((args.width, args.kernel),) * args.layers, attention=False,
            dropout=0.0, share_embed=False, positional_embeddings=False,
            adaptive_softmax_cutoff=list(args.cutoffs),
        )  # fmt: skip
        self.model = FConvLanguageModel(decoder)
        self.criterion = AdaptiveLoss(SimpleNamespace(target_dictionary=words), sentence_avg=False)
        self.optimiser = NAG(self.model.parameters(), lr=args.lr, momentum=args.momentum)

    @staticmethod
    def sample(examples: Examples) -> dict:
        """A batch as its task gives it to the criterion: the targets are padded as the input is."""
        targets = torch.full_like(examples.inputs, PAD).flatten()
        targets[examples.rows] = examples.targets
        net_input = {"src_tokens": examples.inputs, "src_lengths": examples.lengths}
        return {"net_input": net_input, "target": targets.view_as(examples.inputs)}

    def step(self, examples: Examples) -> float:
        """One update; the loss in nats a target, as its criterion has it."""
        self.optimiser.zero_grad(set_to_none=True)
        loss, count, _ = self.criterion(self.model, self.sample(examples))
        (loss / count).backward()
        clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.optimiser.step()
        return loss.item() / count

    @torch.inference_mode()
    def evaluate(self, examples: Examples) -> float:
        """The summed loss in nats, as its validation has it."""
        return self.criterion(self.model, self.sample(examples))[0].item()

    @torch.inference_mode()
    def exact(self, examples: Examples) -> float:
        """The summed loss in nats of all targets, none left out."""
        states = self.model(**self.sample(examples)["net_input"])[0].flatten(0, 1)[examples.rows]
        logits, targets = self.model.decoder.adaptive_softmax(states[None], examples.targets)
        return sum(
            F.cross_entropy(some, t, reduction="sum").item()
            for some, t in zip(logits, targets, strict=True)
            if t is not None
        )

    def multiply_adds(self, examples: Examples) -> int:
        """Of evaluating a batch; its convolutions' kernel is one that torch does not count."""
        weights = sum(layer.weight.numel() for layer in self.model.decoder.convolutions)
        return multiply_adds(lambda: self.evaluate(examples)) + weights * examples.inputs.numel()


class Data:
    """Batches of a text, the same for everybody."""

    def __init__(self, args: argparse.Namespace, directory: Path):
        normaliser = Normaliser()
        content, _ = Word.learn((normaliser(line) for _, line in read_lines(args.text)), None, 1, 0)
        words = Word(content, normaliser)
        self.size, self.args, self.objective = words.size, args, CausalObjective()
        self.train = binarise([args.text], words, directory / "train.bin")
        self.valid = binarise([args.valid], words, directory / "valid.bin")
        self.counts = count_targets(self.objective, self.train, self.size)

    def epoch(self, corpus: Corpus, number: int) -> Iterator[Examples]:
        """The batches of an epoch."""
        for indices in plan_epoch(
            corpus.lengths,
            Batch(tokens=self.args.tokens),
            self.objective.boundary,
            self.args.seed,
            number,
        ):
            yield self.objective.training(corpus.batch(indices), None, self.size)

    def updates(self) -> Iterator[Examples]:
        """Training batches without end."""
        epoch = 0
        while True:
            yield from self.epoch(self.train, epoch)
            epoch += 1


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--text", required=True, metavar="F", help="trained on; a sentence or paragraph a line"
    )
    parser.add_argument("--valid", required=True, metavar="F", help="evaluated on")
    parser.add_argument("--layers", type=int, default=6, help="(default: %(default)s)")
    parser.add_argument("--width", type=int, default=256, help="of a layer (default: %(default)s)")
    parser.add_argument(
        "--kernel", type=int, default=4, help="tokens that a layer reads (default: %(default)s)"
    )
    parser.add_argument("--dim", type=int, default=128, help="of the lookup (default: %(default)s)")
    parser.add_argument(
        "--arch", type=json.loads, default={}, metavar="JSON", help="more of lmtools' arch settings"
    )
    parser.add_argument(
        "--cutoffs",
        type=int,
        nargs="+",
        default=[4_000, 12_000],
        help="of the adaptive softmax (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens", type=int, default=2_048, help="a batch, padding counted (default: %(default)s)"
    )
    parser.add_argument("--lr", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--momentum", type=float, default=0.99, help="(default: %(default)s)")
    parser.add_argument("--clip", type=float, default=0.1, help="(default: %(default)s)")
    parser.add_argument(
        "--updates", type=int, default=200, help="of each model in all (default: %(default)s)"
    )
    parser.add_argument(
        "--turns",
        type=int,
        default=5,
        help="among which the updates are divided (default: %(default)s)",
    )
    parser.add_argument(
        "--evaluate",
        type=int,
        default=10,
        help="validation batches evaluated a turn (default: %(default)s)",
    )
    parser.add_argument(
        "--precisions",
        nargs="+",
        default=["float32", "bfloat16"],
        help="of lmtools (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--out", metavar="F.json", help="write the figures")
    return parser.parse_args()


def main() -> int:
    """Measure, print, write."""
    args = arguments()
    warnings.filterwarnings("ignore")  # fairseq's use of what torch has abandoned
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as directory:
        data = Data(args, Path(directory))
        models = {"fairseq": Fairseq(args, data.size)}
        models |= {
            f"lmtools {precision}": Ours(args, data.size, data.counts, precision)
            for precision in args.precisions
        }
        print(
            f"{describe_machine(CPU)}; {args.threads} thread(s); {data.size:,} ids, batches of"
            f" {args.tokens:,} tokens"
        )
        rows = measure(models, data, args)
    if args.out:
        made = {
            "rows": rows,
            "machine": describe_machine(CPU),
            "size": data.size,
            "versions": {"torch": torch.__version__},
        }
        Path(args.out).write_text(json.dumps(made | vars(args), indent=1) + "\n")
    return 0


def measure(models: dict, data: Data, args: argparse.Namespace) -> list[dict]:
    """One row a model, printed as it is known."""
    updates = data.updates()
    valid = list(data.epoch(data.valid, 0))
    speeds = {name: {"training": [], "evaluation": []} for name in models}
    losses = {name: [] for name in models}
    for model in models.values():
        model.evaluate(valid[0])  # warms up
    for turn, count in enumerate(
        np.diff(np.linspace(0, args.updates, args.turns + 1, dtype=int)).tolist()
    ):
        batches = [next(updates) for _ in range(count)]
        some = [valid[(turn * args.evaluate + i) % len(valid)] for i in range(args.evaluate)]
        for kind, work in (("training", batches), ("evaluation", some)):
            for name, speed in alternate(models, work, kind == "training", losses).items():
                speeds[name][kind].append(speed)
        shown = ", ".join(
            f"{name} {statistics.mean(values[-count:]):.4f}" for name, values in losses.items()
        )
        print(
            f"{len(losses['fairseq'])} updates, loss of this turn's in nats a word: {shown}",
            flush=True,
        )
    return [row(name, model, models, valid, speeds, losses[name]) for name, model in models.items()]


def alternate(
    models: dict, batches: Sequence[Examples], training: bool, losses: dict
) -> dict[str, float]:
    """Targets a second of each model; they alternate batch by batch, so that whatever else the
    machine does meets all alike.
    """
    seconds = dict.fromkeys(models, 0.0)
    for model in models.values():
        model.model.train(training)
    for batch in batches:
        for name, model in models.items():
            function = (
                (lambda m=model, n=name, b=batch: losses[n].append(m.step(b)))
                if training
                else partial(model.evaluate, batch)
            )
            seconds[name] += stopwatch(function, CPU)
    return {
        name: sum(len(batch.targets) for batch in batches) / spent
        for name, spent in seconds.items()
    }


def row(
    name: str, model, models: dict, valid: Sequence[Examples], speeds: dict, losses: list[float]
) -> dict:
    """What is known of a model at the end."""
    targets = sum(len(batch.targets) for batch in valid)
    perplexity = math.exp(math.fsum(map(model.exact, valid)) / targets)
    ratios = {
        kind: statistics.median(
            a / b for a, b in zip(speeds[name][kind], speeds["fairseq"][kind], strict=True)
        )
        for kind in speeds[name]
    }
    result = {
        "name": name, "parameters": sum(p.numel() for p in model.model.parameters()),
        "flops": model.multiply_adds(valid[0]) / len(valid[0].targets), "perplexity": perplexity,
        **{kind: {"median": statistics.median(s), "of_fairseq": ratios[kind], "values": s} for kind,
        s in speeds[name].items()},
        "losses": losses,
    }  # fmt: skip
    print(
        f"{name:<16} {result['parameters']:,} parameters, {result['flops'] / 1e6:.2f} M"
        " multiply-adds a token; tokens a second: training "
        + "; evaluation ".join(
            f"{result[kind]['median']:,.0f} ({ratios[kind]:.2f} x fairseq by turn)"
            for kind in ratios
        )
        + f"; perplexity {perplexity:.2f} after {len(losses)} updates",
        flush=True,
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
