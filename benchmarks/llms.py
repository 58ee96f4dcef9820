"""Hypotheses a second of processor time by large language models, which take turns: the first
hypotheses of lists, each model on all of them, --turns times.
`--lm plain:DIR`: transformers as its users call it, batches of 8 and all logits, in float32.
`--lm NAME/precision=P`: any other one in precision P (bfloat16, int8).
`--lm "server:COMMAND .. {port}"`: a server that the command starts, asked for one text at a time;
its processor time is counted too.
"""

import argparse
import atexit
import json
import os
import resource
import shlex
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import numpy as np
import torch
import transformers

from lmtools import read
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError, exit_with_message
from lmtools.score import load, score_texts

TICKS = os.sysconf("SC_CLK_TCK")
servers: list[subprocess.Popen] = []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nbest", required=True)
    parser.add_argument("--lm", action="append", required=True)
    parser.add_argument("--hypotheses", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    texts = [hyp.text for nbest in read(args.nbest) for hyp in nbest.hyps[:10]]
    texts = list(dict.fromkeys(texts))[: args.hypotheses]
    models = {lm: open_scorer(lm) for lm in args.lm}
    speeds: dict[str, list[float]] = {lm: [] for lm in models}
    sums: dict[str, np.ndarray] = {}
    for _ in range(args.turns):
        for lm, score in models.items():
            before = spent()
            sums[lm] = score(texts)
            speeds[lm].append(len(texts) / (spent() - before))
    first = next(iter(sums.values()))
    for lm, each in speeds.items():
        row = {"lm": lm, "hypotheses": len(texts), "per_second": statistics.median(each)}
        row |= {"turns": each, "most_nats_from_first": float(np.abs(sums[lm] - first).max())}
        print(json.dumps(row))


def open_scorer(lm: str) -> Callable[[Sequence[str]], np.ndarray]:
    """Return what gives log p of each text, in nats."""
    if lm.startswith("plain:"):
        return open_plain(lm.removeprefix("plain:"))
    if lm.startswith("server:"):
        lm = start_server(lm.removeprefix("server:"))
    name, _, precision = lm.partition("/precision=")
    computing = Computing("cpu", cache="none", precision=precision or "float32")
    model = load(name, computing)
    return lambda texts: score_texts(texts, model, computing).log_prob


def open_plain(directory: str) -> Callable[[Sequence[str]], np.ndarray]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    tokenizer.padding_side = "right"
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()

    @torch.inference_mode()
    def score(texts: Sequence[str]) -> np.ndarray:
        sums = []
        ends = [tokenizer.bos_token + text + tokenizer.eos_token for text in texts]
        for first in range(0, len(ends), 8):
            batch = tokenizer(
                ends[first : first + 8], return_tensors="pt", padding=True, add_special_tokens=False
            )
            logits = model(**batch).logits[:, :-1].log_softmax(-1)
            picked = logits.gather(-1, batch.input_ids[:, 1:, None])[..., 0]
            sums.append((picked * batch.attention_mask[:, 1:]).sum(-1).numpy())
        return np.concatenate(sums)

    return score


def start_server(command: str) -> str:
    """Start a server on a free port of loopback; return its specification when it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        shlex.split(command.replace("{port}", str(port))), stdout=subprocess.DEVNULL
    )
    atexit.register(server.kill)
    servers.append(server)
    while server.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{port}/v1/models").raise_for_status()
            return f"http://127.0.0.1:{port}/v1,requests=1"
        except httpx.HTTPError:
            time.sleep(1)
    raise UserError(f"{command}: ended with status {server.returncode} before it answered")


def spent() -> float:
    """Return the processor time of this process and of servers so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    files = [Path(f"/proc/{server.pid}/stat").read_text() for server in servers]
    # user and system: the 12th and 13th behind the program's name
    ticks = [sum(map(int, text.rpartition(")")[2].split()[11:13])) for text in files]
    return used.ru_utime + used.ru_stime + sum(ticks) / TICKS


if __name__ == "__main__":
    with exit_with_message():
        main()
