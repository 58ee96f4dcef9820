"""How fast `lmtools serve` answers: lists of 10 hypotheses to one client at a time by a neural
model and an n-gram, and requests a second to 8 clients by the n-gram alone.

    python benchmarks/serve.py egs/librispeech/exp/lm/causal egs/librispeech/exp/lm/ngram

The lists are those of egs/librispeech's mini corpus, in the order of the file and each once, over
one connection a client on this machine. The ratios are of the time that a request takes to what the
same scores and choice take in the process itself, without HTTP; by turns.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import lmtools
from lmtools.base.computing import Computing
from lmtools.base.specs import LMSpec
from lmtools.formats.jsonl import as_tree
from lmtools.rescoring.weights import Dev, Weights
from lmtools.serve.chooser import Chooser

LISTS = Path(__file__).parents[1] / "egs/librispeech/mini/test.nbest.jsonl.xz"
DEPTH, CLIENTS = 10, 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("neural", help="directory of a neural model")
    parser.add_argument("ngram", help="directory of an n-gram model")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="(default: %(default)s)")
    args = parser.parse_args()
    lists = lmtools.read(LISTS)
    lists = [replace(nbest, ref=None, hyps=nbest.hyps[:DEPTH]) for nbest in lists]
    bodies = [json.dumps(as_tree(nbest)).encode() for nbest in lists]
    both, one = {"neural": args.neural, "ngram": args.ngram}, {"ngram": args.ngram}
    own = [*lists[0].hyps[0].scores]
    for name, lms, clients in (("neural + ngram", both, 1), ("ngram", one, CLIENTS)):
        with tempfile.TemporaryDirectory() as home:
            path = f"{home}/w.json"
            features = dict.fromkeys([*own, *lms], 1.0)
            dev = Dev("none", "", 1, 1.0, 1.0)
            Weights("wer", features, own[0], dev).save(path)
            measure(name, lms, path, bodies, clients, turns=args.turns)


def measure(name: str, lms, path: str, bodies: list[bytes], clients: int, turns: int) -> None:
    """Print the percentiles, the rate and the ratio of one system."""
    specs = {name: LMSpec(lm) for name, lm in lms.items()}
    chooser = Chooser(specs, path, Computing("cpu", cache="none"))
    words = [word for pair in lms.items() for word in ("--lm", "=".join(pair))]
    command = [sys.executable, "-m", "lmtools", "serve", *words, "--weights", path]
    command += ["--device", "cpu", "--set", "port=0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        line = next(line for line in server.stderr if line.startswith("listening"))
        port, served, alone, rates = int(line.rpartition(":")[2]), [], [], []
        for turn in range(turns + 1):  # the first warms up
            seconds, took = asyncio.run(ask_all(port, bodies, clients))
            inside = [time_one(chooser, body) for body in bodies]
            if turn:
                served += seconds
                alone += inside
                rates.append(len(bodies) / took)
        server.terminate()
    cuts = statistics.quantiles(served, n=20)
    ratio = statistics.median(served) / statistics.median(alone)
    print(
        f"{name}, {clients} client(s): p50 {1e3 * cuts[9]:.1f} ms, p95 {1e3 * cuts[18]:.1f} ms,"
        f" {statistics.median(rates):,.0f} requests a second; without HTTP p50"
        f" {1e3 * statistics.median(alone):.1f} ms, ratio {ratio:.2f}",
        flush=True,
    )


def time_one(chooser: Chooser, body: bytes) -> float:
    """Seconds that an answer takes in this process."""
    begin = time.perf_counter()
    chooser.answer([body])
    return time.perf_counter() - begin


async def ask_all(port: int, bodies: list[bytes], clients: int) -> tuple[list[float], float]:
    """The seconds of each request, and of all: each client asks for its share in turn."""
    begin = time.perf_counter()
    parts = await asyncio.gather(*(ask(port, bodies[i::clients]) for i in range(clients)))
    return [seconds for part in parts for seconds in part], time.perf_counter() - begin


async def ask(port: int, bodies: list[bytes]) -> list[float]:
    """The seconds of requests one after the other over a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds = []
    for body in bodies:
        begin = time.perf_counter()
        start = b"POST /rescore HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        writer.write(start % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        seconds.append(time.perf_counter() - begin)
    writer.close()
    return seconds


if __name__ == "__main__":
    main()
