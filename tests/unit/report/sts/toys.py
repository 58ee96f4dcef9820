"""A made-up experiment of semantic textual similarity, every artifact plausible."""

import hashlib
import math
import random
from pathlib import Path

import numpy as np
import yaml
from scipy import stats
from unit.report.conftest import MACHINE, dump, write_stages
from unit.report.lm.toys import learning

from lmtools.report.style import load_style

SIZES = {"dev": 300, "test": 420}
QUALITY = {  # by system: how much of the similarity is in the cosines of each layer
    "causal": {0: 0.52, 1: 0.55, 2: 0.47, 3: 0.40}, "causal-eos": {3: 0.22},
    "masked": {0: 0.50, 1: 0.57, 2: 0.55, 3: 0.49},
    "masked-masked": {3: 0.56}, "masked-cls": {3: 0.31}, "masked-boundaries": {3: 0.48},
    "bert": {n: 0.5 - 0.02 * n for n in range(7)},
    "tta": {0: 0.55, 1: 0.61, 2: 0.66, 3: 0.69}, "tta-max": {3: 0.57}, "words": {0: 0.58},
    "tfidf": {0: 0.45},
}  # fmt: skip
STYLE = load_style(Path(__file__).parents[4] / "egs/stsb/conf/report.yaml")
VIEWS = tuple(STYLE.views)
COARSE = 4  # grades of a constructed corpus, without the highest
MINUTES = {"causal": 900.0, "masked": 1800.0, "tta": 1750.0}


def sts_experiment(
    home: Path, corpus: str = "stsb", quality=QUALITY, sizes=SIZES, speed: bool = True
) -> Path:
    """The path of home/exp, complete in all parts; mini has grades of similarity."""
    rng, exp = np.random.default_rng(1), home / "exp"
    for name, size in sizes.items():
        coarse = corpus == "mini"
        gold = rng.integers(0, COARSE + 1, size) if coarse else np.round(rng.uniform(0, 5, size), 2)
        for system, layers in quality.items():
            tree = judged(name, system, gold.astype(float), layers, rng)
            dump(tree, exp / f"sts/{system}/{name}.json")
    for seed, name in enumerate(MINUTES):
        folder = exp / "lm" / name
        folder.mkdir(parents=True)
        tree = {"model": name, "objective": name, "criterion": "softmax", "seed": 1}
        tree["optim"] = {"name": "adam", "lr": 0.001}
        (folder / "config.yaml").write_text(yaml.safe_dump(tree))
        learning(folder / "metrics.jsonl", math.log(90 + 20 * seed), random.Random(seed))
    if speed:
        dump(bench(rng), exp / "bench/speed.json")
    titles = "get data; prepare text and pairs; subword and binarise; train LMs; embed; correlate"
    write_stages(exp, corpus, titles, (0.8, 3.2, 14.9, 4450.5, 61.0, 4.4))
    return exp


def judged(name: str, system: str, gold: np.ndarray, layers, rng) -> dict:
    """What `lmtools sts --out` writes of cosines with so much of `gold` a layer."""
    rows = []
    for number, share in layers.items():
        noisy = share * (gold - gold.mean()) / gold.std() + math.sqrt(
            1 - share**2
        ) * rng.standard_normal(len(gold))
        rows.append(row(number, gold, 0.8 + 0.06 * np.tanh(noisy)))
    signature = sign(system)
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"pairs": f"data/{name}/pairs.tsv", "sha256": digest, "count": len(gold),
    "signature": signature,
            "similarity": gold.tolist(), "rows": rows}  # fmt: skip


def sign(system: str) -> dict[str, str]:
    """The signature of the vectors of LM or LM-VIEW."""
    lm, _, view = system.rpartition("-")
    lm, view = (lm, view) if lm and view in VIEWS else (system, "")
    kind = {"bert": "hf-bert", **dict.fromkeys("abcdef", "causal")}.get(lm, lm)
    model = {"model": hashlib.sha256(lm.encode()).hexdigest()[:16]}
    if view in ("masked", "boundaries"):
        return {"lm": kind, **model, "pool": "mean", view: "yes"}
    return {"lm": kind, **model, "pool": view or "mean"}


def row(number: int, gold: np.ndarray, cosines: np.ndarray) -> dict:
    """A layer's row: correlations with intervals by Fisher's transformation, and the cosines."""
    kinds = {
        "pearson": stats.pearsonr(gold, cosines)[0],
        "spearman": stats.spearmanr(gold, cosines)[0],
    }
    width = 1.96 / math.sqrt(len(gold) - 3)
    spans = {
        kind: [r, math.tanh(math.atanh(r) - width), math.tanh(math.atanh(r) + width)]
        for kind, r in kinds.items()
    }
    return {"layer": number, **spans, "cosine": cosines.tolist()}


def bench(rng) -> dict:
    """What the benchmark of representations writes: run times by length and batch."""
    rows = []
    models = {"causal": (0.9, 0.3), "masked": (1.1, 1.2), "masked-shared": (1.0, 1.0)}
    models |= {"masked-intact": (0.92, 0.3), "tta": (0.9, 0.32)}
    for words in (5, 10, 20, 40):
        for lm, (base, power) in models.items():
            seconds = [1e-3 * base * words**power * float(rng.uniform(0.9, 1.2)) for _ in range(9)]
            row = {"lm": lm, "task": "represent", "words": words, "tokens": words}
            rows.append({**row, "seconds_median": sorted(seconds)[4], "seconds": seconds})
    rates = {"tokens": 24, "sentences": 256, "sentences_per_second": 801.5}
    rates |= {"gflops": 71.2, "matrix_gflops": 90.1, "share": 0.79}
    batched = dict.fromkeys(("causal", "masked-intact", "tta"), rates)
    return {"rows": rows, "batched": batched, **MACHINE}
