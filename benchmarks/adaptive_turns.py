"""Forward and backward pass of three adaptive softmaxes on the same states and targets, in turns;
prints times, ratios and losses.

All three have the same weights, so that their losses and gradients must agree. Ours adds biases,
which are 0 here.
"""

import argparse
import json
import statistics
import sys
import warnings
from types import SimpleNamespace

import torch
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.modules import AdaptiveSoftmax
from measures.machine import describe_machine, stopwatch
from torch import Tensor, nn

from lmtools.models.outputs.noise import LogUniform
from lmtools.models.outputs.softmax import Adaptive

# fairseq leaves the padding id out of the loss, in each cluster the id at its place too: here no id
# is one
NO_PADDING = -100


class Ours:
    """lmtools, with the weights of torch's."""

    def __init__(self, like: nn.AdaptiveLogSoftmaxWithLoss, size: int):
        self.layer = Adaptive(like.in_features, size, like.cutoffs[:-1], like.div_value)
        with torch.no_grad():
            self.layer.head.weight.copy_(like.head.weight)
            for projection, tail, (narrow, rows) in zip(
                self.layer.projections, self.layer.tails, like.tail, strict=True
            ):
                projection.weight.copy_(narrow.weight)
                tail.weight.copy_(rows.weight)

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The summed cross entropy in nats."""
        return self.layer(states, targets)[0]


class Torch:
    """torch.nn.AdaptiveLogSoftmaxWithLoss."""

    def __init__(self, like: nn.AdaptiveLogSoftmaxWithLoss, size: int):
        self.layer = like

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The summed cross entropy in nats."""
        return -self.layer(states, targets).output.sum()


class Fairseq:
    """fairseq's AdaptiveSoftmax under its criterion `adaptive_loss`, which is given the states in
    place of a decoder's output.
    """

    def __init__(self, like: nn.AdaptiveLogSoftmaxWithLoss, size: int):
        self.layer = AdaptiveSoftmax(
            size, like.in_features, like.cutoffs[:-1], dropout=0.0, factor=like.div_value
        )
        with torch.no_grad():
            self.layer.head.weight.copy_(like.head.weight)
            for (projection, _, tail), (narrow, rows) in zip(
                self.layer.tail, like.tail, strict=True
            ):
                projection.weight.copy_(narrow.weight)
                tail.weight.copy_(rows.weight)
        dictionary = SimpleNamespace(pad=lambda: NO_PADDING)
        self.criterion = AdaptiveLoss(
            SimpleNamespace(target_dictionary=dictionary), sentence_avg=False
        )

    def __call__(self, states: Tensor) -> tuple[Tensor]:
        """What its criterion takes for the decoder's output."""
        return (states,)

    @property
    def decoder(self):
        """Where its criterion looks for the layer."""
        return SimpleNamespace(adaptive_softmax=self.layer)

    def get_targets(self, sample: dict, _) -> Tensor:
        """What its criterion takes for the model's targets."""
        return sample["target"]

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The summed cross entropy in nats."""
        return self.criterion(
            self, {"net_input": {"states": states[None]}, "target": targets[None]}
        )[0].sum()


KINDS = {"lmtools": Ours, "torch": Torch, "fairseq": Fairseq}


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--size",
        type=int,
        default=200_000,
        help="ids, targets drawn log-uniformly (default: %(default)s)",
    )
    parser.add_argument(
        "--cutoffs",
        type=int,
        nargs="+",
        default=[4_000, 20_000, 100_000],
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--divide",
        type=float,
        default=4.0,
        help="width of a cluster over that of the one before (default: %(default)s)",
    )
    parser.add_argument(
        "--width", type=int, default=512, help="of the states (default: %(default)s)"
    )
    parser.add_argument(
        "--targets",
        type=int,
        nargs="+",
        default=[1_664],
        help="a batch (default: 64 sentences of 25 tokens)",
    )
    parser.add_argument(
        "--turns",
        type=int,
        default=9,
        help="after one that warms up; medians (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--out", metavar="F.json", help="write the figures")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and fail where the layers disagree."""
    args = arguments()
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    like = nn.AdaptiveLogSoftmaxWithLoss(args.width, args.size, args.cutoffs, args.divide)
    layers = {name: kind(like, args.size) for name, kind in KINDS.items()}
    print(f"{describe_machine(torch.device('cpu'))}; {args.threads} thread(s), float32")
    print(
        f"{args.size:,} ids, cutoffs {args.cutoffs}, width {args.width} divided by {args.divide:g};"
        f" median of {args.turns} turns"
    )
    rows = [row for count in args.targets for row in measure(layers, args, count)]
    if args.out:
        with open(args.out, "w") as stream:
            json.dump(
                {"rows": rows, "machine": describe_machine(torch.device("cpu")), **vars(args)},
                stream,
                indent=1,
            )
    return int(any(row["difference"] > 1e-3 for row in rows))


def measure(layers: dict, args: argparse.Namespace, count: int) -> list[dict]:
    """One row a layer for batches of `count` targets."""
    noise = LogUniform(range(args.size, 0, -1), ())
    states = torch.randn(count, args.width)
    targets = torch.from_numpy(noise.draw(count))
    seconds: dict[str, list[float]] = {name: [] for name in layers}
    results = {}
    for turn in range(args.turns + 1):
        for name, layer in layers.items():
            spent = stopwatch(
                lambda layer=layer, name=name: results.update({name: step(layer, states, targets)}),
                states.device,
            )
            if turn:
                seconds[name].append(spent)
    base = results["torch"]
    rows = []
    for name, (loss, gradient) in results.items():
        ratio = statistics.median(
            s / o for s, o in zip(seconds[name], seconds["lmtools"], strict=True)
        )
        difference = max(
            abs(loss / base[0] - 1), float((gradient - base[1]).abs().max() / base[1].abs().max())
        )
        rows.append({
            "layer": name, "targets": count, "loss": loss / count, "difference": difference,
            "seconds_median": statistics.median(seconds[name]), "of_lmtools": ratio,
            "seconds": seconds[name],
        })  # fmt: skip
        print(
            f"{count:,} targets: {name:8s} {rows[-1]['seconds_median'] * 1e3:8.1f} ms, {ratio:.2f}"
            f" of lmtools' time by turn; loss {loss / count:.6f} nats a target, loss and gradient"
            f" differ from torch's by {difference:.1e}",
            flush=True,
        )
    return rows


def step(layer, states: Tensor, targets: Tensor) -> tuple[float, Tensor]:
    """Loss, and gradient of the states; those of the weights are taken too."""
    states = states.clone().requires_grad_()
    layer.layer.zero_grad(set_to_none=True)
    loss = layer.loss(states, targets)
    loss.backward()
    return float(loss.detach()), states.grad


if __name__ == "__main__":
    sys.exit(main())
