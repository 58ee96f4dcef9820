"""A made-up language-modelling experiment with plausible data in every artifact."""

import math
import random
from pathlib import Path

import yaml
from unit.report.conftest import MACHINE, dump, write_lines, write_stages

from lmtools.report.style import load_style

STYLE = load_style(Path(__file__).parents[4] / "egs/gbw/conf/report.yaml")
WORDS = 33_283
# by name: config.yaml's model or n-gram order, vocabulary, parameters, test perplexity, OOV
MAIN = {
    "kn5": (5, "words", 4_210_774, 241.6),
    "lstm": ("lstm", "words", 9_310_220, 142.3),
    "gcnn": ("gcnn", "words", 9_288_004, 151.8),
    "elmo-char": ("elmo", "char", 12_100_512, 96.4),
    "esulmo-bpe-500": ("elmo", "bpe-500", 12_106_912, 94.7),
}
GATES = {"GLU": 151.8, "GTU": 158.1, "ReLU": 161.9, "tanh": 177.4, "bilinear": 156.2}
GATES["linear"] = 204.5
CONTEXT = {4: 181.2, 7: 166.0, 13: 155.7, 25: 151.8, 49: 151.1}
TRAINING = {"both": 151.8, "clipping only": 163.3, "weight norm only": 171.9, "neither": 188.6}
OUTPUT = {"GCNN adaptive": 151.8, "GCNN full": 147.0, "LSTM adaptive": 142.3, "LSTM full": 139.5}
PIECES = {
    "bpe-500": 94.7, "bpe-1000": 93.9, "bpe-2000": 95.1, "unigram-500": 95.6, "unigram-1000": 94.8,
    "unigram-2000": 95.9, "char": 96.4,
}  # fmt: skip
GRIDS = {
    "gates": {"title": "Gates", "runs": {label: ("gcnn", "words", ppl) for label,
    ppl in GATES.items()}},
    "training": {"title": "Weight normalisation and clipping",
    "runs": {label: ("gcnn", "words", ppl) for label, ppl in TRAINING.items()}},
    "output": {"title": "Output layers", "runs": {label: (label[:4].lower(), "words",
    ppl) for label, ppl in OUTPUT.items()}},
    "context": {
        "title": "Context size", "runs": {str(label): ("gcnn", "words", ppl) for label,
        ppl in CONTEXT.items()},
        "x": "words that a state sees", "at": {str(label): float(label) for label in CONTEXT},
    },
    "pieces": {
        "title": "Pieces that spell words",
        "runs": {label: ("elmo", label, ppl) for label, ppl in PIECES.items()},
        "x": "ids of the piece vocabulary",
        "at": {label: float(label.partition("-")[2]) for label in PIECES if "-" in label},
    },
}  # fmt: skip
SPEEDS = {  # multiply-adds a token, throughput, responsiveness, contiguous
    "kn5": (None, 410_000.0, 395_000.0, 402_000.0), "lstm": (9.1e6, 9_800.0, 2_310.0, 2_500.0),
    "gcnn": (7.9e6, 21_400.0, 9_950.0, 22_000.0),
    "output-gcnn-full": (15.7e6, 9_700.0, 6_100.0, 9_900.0),
    "output-lstm-full": (17.2e6, 6_400.0, 2_050.0, 2_200.0),
    "output-gcnn-adaptive": (7.9e6, 21_200.0, 9_900.0, 21_800.0),
    "output-lstm-adaptive": (9.1e6, 9_750.0, 2_300.0, 2_480.0),
    "lstm-2048": (118.0e6, 310.0, 148.0, 151.0), "gcnn-9": (96.0e6, 402.0, 171.0, 398.0),
    "gcnn-8b": (49.0e6, 905.0, 612.0, 890.0),
}  # fmt: skip
RULES = {
    True: "each word is predicted from what is on its left and from what is on its right",
    False: "</s> is predicted once a sentence",
}


def lm_experiment(
    home: Path,
    grids=("gates", "training", "output", "context", "pieces"),
    corpus: str = "wikitext2",
    seed: int = 1,
) -> Path:
    """The path of an experiment directory `home`/exp, complete in all parts of the contract."""
    rng, exp = random.Random(seed), home / "exp"
    for name, (model, vocabulary, parameters, ppl) in MAIN.items():
        language_model(exp, name, model, vocabulary, parameters, ppl, rng)
    for name in grids:
        grid(exp, name, **GRIDS[name], rng=rng)
    dump(bench(rng), exp / "bench/lm.json")
    titles = "get data; prepare text; vocabularies and binarise; train LMs; perplexity; throughput"
    titles += " and responsiveness"
    write_stages(exp, corpus, titles, (0.8, 3.2, 14.9, 9312.5, 411.0, 182.4))
    return exp


def grid(exp: Path, name: str, title: str, runs, rng, x=None, at=None) -> None:
    """A grid and its runs: (model, vocabulary, test perplexity) by label."""
    names = {label: f"{name}-{label.lower().replace(' ', '-')}" for label in runs}
    tree = {
        "title": title,
        "figure": "line" if x else "curves",
        "runs": names,
        "own": list(names.values()),
        **({"x": x, "at": at} if x else {}),
    }
    path = exp / f"grids/{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    for label, (model, vocabulary, ppl) in runs.items():
        language_model(exp, names[label], model, vocabulary, 9_288_004 + 16 * len(label), ppl, rng)


def language_model(
    exp: Path, name: str, model, vocabulary: str, parameters: int, ppl: float, rng
) -> None:
    """A model directory without weights, and perplexities."""
    home = exp / "lm" / name
    home.mkdir(parents=True)
    if isinstance(model, int):
        counts = [WORDS, parameters - WORDS]
        tree = {"kind": "ngram", "order": model, "counts": counts, "tokens": 2_051_910}
    else:
        tree = {"model": model, "objective": "two-way" if model == "elmo" else "causal"}
        tree |= {"criterion": "softmax", "seed": 1, "optim": {"name": "nag", "lr": 1.0}}
        tree["vocabulary"] = {"size": WORDS, "hash": "0123456789abcdef"}
        learning(home / "metrics.jsonl", math.log(0.97 * ppl), rng)
    tree["facts"] = {"parameters": parameters, "vocabulary": read_words(vocabulary)}
    (home / "config.yaml").write_text(yaml.safe_dump(tree))
    for text, factor, size in (("valid", 1.06, 213_886), ("test", 1.0, 241_211)):
        kind = "two-way perplexity" if model == "elmo" else "perplexity"
        tree = {"kind": kind, "word_ppl": factor * ppl, "oov": 0, "sentences": 2_891, "words": size}
        tree |= {"rules": RULES[model == "elmo"], "signature": {"model": name.ljust(64, "0")}}
        dump(tree, exp / "ppl" / name / f"{text}.json")


def learning(path: Path, floor: float, rng) -> None:
    lines, pace = [], rng.uniform(0.12, 0.4)
    for step in range(100, 4001, 100):
        loss = floor + 2.2 * math.exp(-step / 700)
        line = {"step": step, "epoch": 1 + step // 1100, "tokens": step * 2048}
        lines.append({**line, "seconds": pace * step, "train_loss": loss - 0.1, "lr": 1.0})
        if step % 400 == 0:
            valid = {"valid_loss": loss + rng.gauss(0, 0.004)}
            lines.append({"step": step, "tokens": step * 2048, **valid})
    write_lines(path, lines)


def read_words(vocabulary: str) -> dict:
    """The facts of a vocabulary of words, or of pieces that spell them."""
    if vocabulary == "words":
        return {"scheme": "word", "size": WORDS, "words": None}
    scheme, _, size = vocabulary.partition("-")
    return {"scheme": scheme, "size": int(size or 86), "words": WORDS}


def bench(rng) -> dict:
    rows = []
    for name, (flops, *rates) in SPEEDS.items():
        model = "ngram" if name == "kn5" else "lstm" if "lstm" in name else "gcnn"
        row = {"name": name, "model": model, "parameters": None if name == "kn5" else 9_300_000}
        row |= {"flops": flops, "flops_hidden": flops and 0.6 * flops, "batch": 50, "length": 20}
        row["contiguous_length"] = 2000
        for key, speed in zip(("throughput", "responsiveness", "contiguous"), rates, strict=True):
            turns = [speed, *(speed * rng.uniform(0.95, 1.05) for _ in range(4))]
            row[key] = {"median": speed, "values": sorted(turns)}
        rows.append(row)
    sizes = {"batch": 50, "length": 20, "contiguous": 2000, "tokens": 1000, "repeats": 5}
    facts = {"precision": "float32", "device": "cpu", "versions": {"lmtools": "0.1.0"}}
    return {"rows": rows, **sizes, **MACHINE, **facts}
