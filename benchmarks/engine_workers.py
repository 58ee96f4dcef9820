"""The engines that engines.py compares, and the process of one: it loads the model once and then
scores all texts whenever it is asked.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

import lmtools
from lmtools.base.errors import UserError
from lmtools.text.subword import load_subword

# (texts) -> their sums of log-probabilities
Score = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True)
class Load:
    """What a worker loads: from `home`, for `calls` calls at a time of `threads` threads each."""

    home: Path
    precision: str
    threads: int
    calls: int


def load_lmtools(load: Load, engine: str) -> Score:
    """Ours, by `engine`; a text alone is not filled up to a batch (rows=1) but by `auto`, which is
    what a user gets who asks for nothing.
    """
    how = {"precision": load.precision, "engine": engine, "threads": load.threads}
    many, one = (
        lmtools.load(load.home / "lm", device="cpu", rows=rows, **how)
        for rows in (None, None if engine == "auto" else 1)
    )
    return lambda texts: (many if len(texts) > 1 else one).score(texts)


def load_onnxruntime(load: Load) -> Score:
    """ONNX Runtime with all its optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = load.threads
    session = onnxruntime.InferenceSession(
        load.home / "onnx/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    return score_ids(load.home, lambda feed: session.run(["nll"], feed)[0])


def load_openvino(load: Load) -> Score:
    """OpenVINO; each calling thread has a request of its own."""
    import openvino

    model = openvino.Core().compile_model(
        load.home / "onnx/model.onnx", "CPU",
        {
            "INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[load.precision],
            "INFERENCE_NUM_THREADS": load.threads * load.calls, "NUM_STREAMS": load.calls,
            "ENABLE_CPU_PINNING": False,
        },
    )  # fmt: skip
    own = threading.local()

    def infer(feed):
        if not hasattr(own, "request"):
            own.request = model.create_infer_request()
        return own.request.infer(feed)["nll"]

    return score_ids(load.home, infer)


def score_ids(home: Path, run: Callable) -> Score:
    """By a function of padded ids and lengths that gives negative log-probabilities."""
    subword = load_subword(home / "onnx/subword")

    def score(texts):
        ids = subword.encode_batch(texts)
        lengths = np.array([len(one) for one in ids])
        x = np.zeros((len(ids), max(1, lengths.max())), dtype=np.int64)
        for row, one in zip(x, ids, strict=True):
            row[: len(one)] = one
        return -np.asarray(run({"x": x, "x_lens": lengths}), dtype=np.float64)

    return score


def load_transformers(load: Load) -> Score:
    """transformers' class and tokenizer, and the loss of each token."""
    import transformers

    torch.set_num_threads(load.threads)
    tokenizer = transformers.AutoTokenizer.from_pretrained(load.home / "hf")
    model = transformers.AutoModelForCausalLM.from_pretrained(load.home / "hf").eval()

    @torch.inference_mode()
    def score(texts):
        given = tokenizer(list(texts), padding=True, return_tensors="pt")
        logits, targets = model(**given).logits[:, :-1], given["input_ids"][:, 1:]
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets, reduction="none"
        )
        return (-(losses * given["attention_mask"][:, 1:]).sum(1)).tolist()

    return score


def load_minicons(load: Load) -> Score:
    """minicons' scorer of left-to-right models."""
    from minicons import scorer

    torch.set_num_threads(load.threads)
    peer = scorer.IncrementalLMScorer(str(load.home / "hf"), "cpu")
    return lambda texts: peer.sequence_score(list(texts), reduction=lambda x: x.sum(0).item())


@dataclass(frozen=True)
class Engine:
    """A row: who computes, in what precision, from which exported form, of which package."""

    name: str
    precision: str
    load: Callable[[Load], Score]
    package: str | None = None
    form: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name} {self.precision}"

    def ways(self, threads: int) -> list[tuple[int, int]]:
        """(threads a call, calls at a time); ours spreads its batches over threads by itself."""
        both = [(threads, 1), (1, threads)]
        return both if self.package and threads > 1 else both[:1]


def ours(precision: str, engine: str) -> Engine:
    return Engine(f"lmtools, {engine}", precision, partial(load_lmtools, engine=engine))


ENGINES = (
    ours("float32", "torch"), ours("float32", "auto"), ours("float32", "prepared"),
    ours("float32", "onnx"),
    Engine("ONNX Runtime", "float32", load_onnxruntime, "onnxruntime", "onnx"),
    Engine("OpenVINO", "float32", load_openvino, "openvino", "onnx"),
    Engine("transformers", "float32", load_transformers, "transformers", "hf"),
    Engine("minicons", "float32", load_minicons, "minicons", "hf"),
    ours("bfloat16", "prepared"),
    Engine("OpenVINO", "bfloat16", load_openvino, "openvino", "onnx"),
    ours("int8", "prepared"), ours("int8", "onnx"),
)  # fmt: skip


def work(number: int, home: Path, threads: int, calls: int) -> None:
    """A worker: loads an engine, says so, and answers each batch size on its input with the seconds
    of every call and the sums. One object of JSON a line.
    """
    out, sys.stdout = sys.stdout, sys.stderr  # what packages print is no answer

    def answer(**what) -> None:
        print(json.dumps(what), file=out, flush=True)

    texts = json.loads((home / "texts.json").read_text())
    engine = ENGINES[number]
    try:
        score = engine.load(Load(home, engine.precision, threads, calls))
    except ImportError as error:
        answer(skipped=f"needs {error.name or engine.package}")
        return
    except UserError as error:
        answer(skipped=str(error))
        return
    answer(version=version(engine.package) if engine.package else lmtools.__version__)
    clock = time.process_time if threads * calls == 1 else time.perf_counter
    with ThreadPoolExecutor(calls) as pool:
        for line in sys.stdin:
            size, order = int(line), list(range(len(texts)))
            if engine.package:  # less padding; ours makes its own batches
                order = sorted(order, key=lambda i: len(texts[i].split()))
            elif size > 1:
                size = len(texts)
            parts = [[texts[i] for i in order[at : at + size]] for at in range(0, len(order), size)]
            if calls == 1:
                made, seconds = [], []
                for part in parts:
                    begin = clock()
                    made.append(score(part))
                    seconds.append(clock() - begin)
            else:
                begin = clock()
                made = list(pool.map(score, parts))
                seconds = [clock() - begin]
            sums = np.empty(len(texts))
            sums[order] = np.concatenate(made)
            answer(size=size, seconds=seconds, sums=sums.tolist())


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
