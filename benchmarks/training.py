"""How much of a training step its matrix products take: tokens a second of lmtools.train's steps
against the products alone, of the same shapes, by torch.

    python benchmarks/training.py [--size 3x128x2000] [--sentences 64] [--tokens 25] [--turns 5]

A step of a causal Transformer is forward, backward, clipping and the update, without the making of
the batch. Of each matrix there are three products: the output, the gradient of the input, that of
the matrix. The two ways take turns in one process; one thread, processor time, the least of the
turns. Attention's products are left out: at 25 tokens they are 2% and less.
"""

import argparse
import time
from collections.abc import Iterator

import torch
from measures.criteria import Bench, Job
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

ARCH = {"positions": 128, "dropout": 0.1, "attention_dropout": 0.1}


def list_products(bench: Bench) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield x (M, K), the matrix (N, K) and the gradient (M, N) of each product of a step."""
    rows = bench.batches[0].inputs.numel()
    layers = [module.weight for module in bench.lm.trunk.modules() if type(module) is nn.Linear]
    for weight in [*layers, bench.lm.output.weight]:
        yield torch.randn(rows, weight.shape[1]), weight.detach(), torch.randn(rows, len(weight))


def multiply(products: list[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Compute all products of a step."""
    for x, weight, gradient in products:
        torch.mm(x, weight.T)
        torch.mm(gradient, weight)
        torch.mm(gradient.T, x)


def measure(function, *arguments) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    function(*arguments)
    return time.process_time() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="3x128x2000", metavar="LAYERSxDIMxWORDS")
    parser.add_argument("--sentences", type=int, default=64, metavar="N")
    parser.add_argument("--tokens", type=int, default=25, metavar="N")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--profile", action="store_true", help="the operators of a step")
    args = parser.parse_args()
    torch.set_num_threads(1)
    layers, dim, words = map(int, args.size.split("x"))
    arch = {"layers": layers, "dim": dim, "heads": max(1, dim // 64), "ffn": 4 * dim} | ARCH
    settings = {"model": "causal", "objective": "causal", "arch": arch}
    bench = Bench(Job(settings, {}, words, args.sentences, args.tokens))
    bench.use("softmax")
    products = list(list_products(bench))
    turns = [(measure(bench.step), measure(multiply, products)) for _ in range(args.turns + 1)]
    step, alone = map(min, zip(*turns, strict=True))
    tokens = len(bench.batches[0].targets)
    print(
        f"{args.size}, {tokens} targets a step: {tokens / step:,.0f} tokens a second,"
        f" products alone {tokens / alone:,.0f}, ratio {alone / step:.2f}"
    )
    if args.profile:
        with profile(activities=[ProfilerActivity.CPU]) as record:
            bench.step()
        print(record.key_averages().table(sort_by="self_cpu_time_total", row_limit=20))


if __name__ == "__main__":
    main()
