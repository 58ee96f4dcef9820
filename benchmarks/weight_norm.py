"""What weight normalisation and clipping cost: a training step of a gated convolutional model with
each on and off (Dauphin et al. 2017 say that both cost little).

    python benchmarks/weight_norm.py [--conf egs/gbw/conf/gcnn.yaml] [--words 7746] [--turns 40]

The four take a step each in turns in one process; one thread, processor time, medians. Batches are
50 sentences of 20 words. The output layer is the configuration's adaptive softmax; the learning
rate is so small that steps without clipping do not diverge.
"""

import argparse
from pathlib import Path
from statistics import median

import torch
from measures.criteria import Bench, Job
from measures.machine import stopwatch

from lmtools.base.config import override, read_layers

CASES = {
    "both": [],
    "clipping only": ["arch.weight_norm=false"],
    "weight normalisation only": ["optim.clip=0"],
    "neither": ["arch.weight_norm=false", "optim.clip=0"],
}
SENTENCES, TOKENS, RATE = 50, 20, 1e-3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    conf = Path("egs/gbw/conf/gcnn.yaml")
    parser.add_argument("--conf", type=Path, default=conf, metavar="F.yaml")
    parser.add_argument("--words", type=int, default=7746, metavar="N")
    parser.add_argument("--turns", type=int, default=40, metavar="N")
    args = parser.parse_args()
    torch.set_num_threads(1)
    benches = {name: build_bench(args, changes) for name, changes in CASES.items()}
    turns = [
        {name: stopwatch(bench.step, bench.device, "processor") for name, bench in benches.items()}
        for _ in range(args.turns)
    ]
    for name in CASES:
        ratio = median(turn[name] / turn["neither"] for turn in turns)
        print(f"{name}: {1000 * median(turn[name] for turn in turns):.1f} ms a step, {ratio:.3f}")


def build_bench(args: argparse.Namespace, changes: list[str]) -> Bench:
    """Return the model of a configuration with changes, ready for steps."""
    tree = override(read_layers(args.conf), [f"optim.lr={RATE}", *changes])
    criterion, output = tree.pop("criterion"), tree.pop("output", {})
    job = Job(tree, output, args.words, SENTENCES, TOKENS, clock="processor")
    bench = Bench(job)
    bench.use(criterion)
    return bench


if __name__ == "__main__":
    main()
