"""A made-up experiment with plausible data in every artifact."""

import hashlib
import json
import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from lmtools.base.seal import write_json
from lmtools.evaluate.edits import align
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.report import write_report
from lmtools.report.drawing import LIGHT, Picture
from lmtools.report.experiment import Experiment, collect
from lmtools.report.table import Table
from lmtools.report.write import make_pictures, make_tables
from lmtools.rescoring.features import gather
from lmtools.rescoring.tuning import tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.rescoring.weights import (
    FIRST_PASS,
    LATTICES,
    LISTS,
    SCORES,
    Dev,
    SystemFacts,
    Weights,
    describe_lm,
)
from lmtools.types import Hypothesis, NBest, ScoreTable

TEXT = (
    "the and of to a in that he shall unto for I his they be is not him them it with all thou thy"
    " was which my me said but ye their have will thee from as are when this out were by you up"
    " there hath then people came had house on into her come one we children s before your also day"
    " land men let go no made hand us saying behold therefore went even do now things every may"
    " sons put after servants king again great done father earth city same heaven give word heart"
    " many brought Jerusalem Israel David o'clock prophet"
)
WORDS = TEXT.split()
HOSTILE = "</script><b>bold</b><img src=x onerror=document.title='owned'>"
# how noisy a judge of errors each is
LMS = {"ngram": 1.9, "causal": 1.6, "masked": 1.9, "tta": 1.5}
SYSTEMS = {
    "first-pass": (), "ngram": ("ngram",), "causal": ("causal",), "masked": ("masked",),
    "tta": ("tta",),
    "tta+ngram": ("tta", "ngram"), "all": ("ngram", "causal", "masked", "tta"),
}  # fmt: skip
WEIGHTS = {"lm": 6.5, "words": 1.2}
# by criterion: milliseconds a step, perplexity, mean and sd of log Z, noise of its judgement
TRAINED = {
    "softmax": (262.0, 143.1, 11.3, 1.9, 1.5), "mse": (271.0, 6400.0, 0.2, 0.31, 5.0),
    "mse-sigmoid": (280.4, 211.0, 0.1, 0.12, 2.6),
    "bce": (291.3, 144.9, 0.004, 0.05, 1.6), "bce-mcs": (61.2, 152.4, -1.3, 1.4, 1.7),
    "bce-is": (62.8, 147.7, 0.03, 0.11, 1.5),
    "bce-cps": (63.9, 148.8, -1.1, 1.2, 1.8), "bce-nce": (64.4, 146.2, 0.02, 0.09, 1.5),
    "ce-mcs": (58.1, 149.9, 4.1, 1.3, 1.7),
    "ce-is": (59.6, 145.4, 8.4, 1.1, 1.6), "ce-cps": (60.0, 149.7, 4.4, 1.3, 1.6),
    "ce-nce": (66.1, 158.8, 2.5, 0.9, 2.0),
    "adaptive": (92.5, 150.6, 9.9, 1.6, 1.7),
}  # fmt: skip


def experiment(home: Path, dev: int = 12, test: int = 24, depth: int = 8, seed: int = 1) -> Path:
    """The path of home/exp beside home/data, complete in all parts of the contract."""
    rng = random.Random(seed)
    exp = home / "exp"
    sets = {"dev": lists(rng, "dev", dev, depth), "test": lists(rng, "test", test, depth)}
    for name, nbests in sets.items():
        jsonl.write(nbests, home / "data" / name / "nbest.jsonl.gz")
        kaldi_text.write({n.utt: n.ref for n in nbests}, home / "data" / name / "text")
    tables = {
        lm: {name: judged(rng, nbests, noise, lm) for name, nbests in sets.items()}
        for lm, noise in LMS.items()
    }
    for lm, columns in tables.items():
        for name, table in columns.items():
            scores.write(table, sets[name], exp / f"score/{lm}/{name}.scores")
            dump(perplexity(lm, name, sets[name]), exp / f"ppl/{lm}/{name}.json")
    for system, lms in SYSTEMS.items():
        columns = {
            lm: [tables[lm]["dev"].log_prob[nbest.utt] for nbest in sets["dev"]] for lm in lms
        }
        features = gather(sets["dev"], columns, "dev")
        options = TuningOptions(lms=lms)
        weights = tune(sets["dev"], features, "data/dev/nbest.jsonl.gz", options)
        signatures = {lm: tables[lm]["dev"].signature for lm in lms}
        weights = replace(weights, signatures=signatures, system=facts(signatures))
        weights.save(exp / "tune" / system / "weights.json")
        for name, nbests in sets.items():
            texts = {nbest.utt: chosen(nbest, weights.features, tables, name) for nbest in nbests}
            kaldi_text.write(texts, exp / "rescore" / system / f"{name}.txt")
    for lm in ("causal", "masked", "tta"):
        learning(exp / "lm" / lm / "metrics.jsonl", lm, rng)
    dump(speed(rng), exp / "bench" / "speed.json")
    stages(exp)
    return exp


def facts(signatures, lists: str = FIRST_PASS) -> SystemFacts:
    """What `lmtools tune` would say of a system of these features."""
    source = SCORES if lists == FIRST_PASS else LISTS
    return SystemFacts(tuple(describe_lm(*one, source) for one in signatures.items()), lists)


def lists(rng, name: str, utterances: int, depth: int) -> list[NBest]:
    """Lists with am and lm; the second is hostile, the third has no words."""
    return [nbest(rng, f"{name}-{i:04}", i, depth) for i in range(utterances)]


def nbest(rng, utt: str, index: int, depth: int) -> NBest:
    ref = [] if index == 2 else words(rng, max(1, round(rng.lognormvariate(2.3, 0.7))))
    if index == 1:
        ref = [*ref, *HOSTILE.split()]
    noise = rng.choice((0.15, 0.35, 0.6))
    candidates = {
        tuple(misheard(rng, ref, noise * rng.choice((0.3, 1, 1.5))))
        for _ in range(1 if index == 3 else depth)
    }
    hyps = []
    for heard in sorted(candidates):
        wrong = align(ref, heard).counts.errors
        am = -900.0 + 36 * len(heard) - 7.5 * wrong + rng.gauss(0, 16)
        lm = -5.5 * len(heard) - 0.4 * wrong + rng.gauss(0, 1.2)
        hyps.append(Hypothesis(" ".join(heard), {"am": round(am, 3), "lm": round(lm, 3)}))
    hyps.sort(
        key=lambda hyp: -(hyp.scores["am"] + WEIGHTS["lm"] * hyp.scores["lm"] + rng.gauss(0, 6))
    )
    return NBest(utt, tuple(hyps), " ".join(ref))


def words(rng, count: int) -> list[str]:
    return rng.choices(WORDS, weights=[1 / (rank + 2) for rank in range(len(WORDS))], k=count)


def misheard(rng, ref, rate: float) -> list[str]:
    """`ref` with substitutions, deletions and insertions at `rate`."""
    heard = []
    for word in ref:
        draw = rng.random() / max(rate, 1e-9)
        kept = [] if draw < 0.8 else [word]
        heard += kept + (words(rng, 1) if draw < 0.6 or 0.8 <= draw < 1 else [])
    return heard or (words(rng, 1) if rng.random() < 0.3 else [])


def judged(rng, nbests, noise: float, lm: str) -> ScoreTable:
    """Scores of a language model that dislikes errors, more or less reliably."""
    log_prob, tokens = {}, {}
    for nbest in nbests:
        texts, ref = [hyp.text.split() for hyp in nbest.hyps], nbest.ref.split()
        errors = [align(ref, text).counts.errors for text in texts]
        log_prob[nbest.utt] = np.array(
            [
                -6.1 * len(t) - 0.9 * e + rng.gauss(0, noise)
                for t, e in zip(texts, errors, strict=True)
            ]
        )
        tokens[nbest.utt] = np.array([len(text) + 1 for text in texts])
    signature = {"model": f"{abs(hash_of(lm)):064x}", "precision": "float32", "version": "0.1.0"}
    return ScoreTable(log_prob, tokens, signature)


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def chosen(nbest: NBest, weights, tables, name: str) -> str:
    """The hypothesis with the highest weighted sum."""

    def total(rank):
        hyp = nbest.hyps[rank]
        values = {
            **hyp.scores,
            "words": len(hyp.text.split()),
            **{lm: tables[lm][name].log_prob[nbest.utt][rank] for lm in tables},
        }
        return sum(weight * values[feature] for feature, weight in weights.items())

    return nbest.hyps[max(range(len(nbest.hyps)), key=total)].text if nbest.hyps else ""


def perplexity(lm: str, name: str, nbests) -> dict:
    base = {"ngram": 210.0, "causal": 160.0, "masked": 21.0, "tta": 14.0}[lm]
    words = sum(len(nbest.ref.split()) for nbest in nbests)
    tree = {"lm": f"exp/lm/{lm}", "text": f"data/{name}/text", "sentences": len(nbests)}
    tree |= {"words": words, "tokens": 2 * words, "log_prob": -12345.6, "bits_per_char": 1.4}
    tree |= {"subword_ppl": base / 3, "word_ppl": base, "oov": 3}
    tree |= {"sentence_ppl_mean": base * 1.5, "sentence_ppl_median": base * 0.9}
    tree["kind"] = "pseudo-perplexity" if lm in ("masked", "tta") else "perplexity"
    return tree | {"rules": "</s> is predicted once a sentence; an unknown word counts as <unk>"}


def write_lines(path: Path, lines: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def learning(path: Path, lm: str, rng) -> None:
    floor, lines = {"causal": 4.4, "masked": 3.1, "tta": 2.7}[lm], []
    for step in range(10, 1010, 10):
        loss = floor + 3.5 * math.exp(-step / 180) + rng.gauss(0, 0.06)
        known = {"epoch": step // 250, "tokens": step * 4096, "seconds": step * 0.4}
        lines.append({"step": step, **known, "train_loss": loss})
        if step % 125 == 0 or step == 1000:
            lines.append({"step": step, "valid_loss": floor + 0.15 + 3.5 * math.exp(-step / 200)})
    write_lines(path, lines)
    (path.parent / "config.yaml").write_text("model: tta\nseed: 1\n")


def speed(rng) -> dict:
    rows = []
    for lm in ("tta", "masked", "causal", "masked-shared"):
        for task in ("hidden", "rerank"):
            for words in (5, 10, 20, 30, 40, 50):
                once = 0.004 + 0.0002 * words + (0.006 + 0.0003 * words if task == "rerank" else 0)
                once *= words if "masked" in lm else 1
                share = 3 if "-" in lm else 1
                seconds = sorted(once * rng.lognormvariate(0, 0.06) / share for _ in range(9))
                row = {"lm": lm, "task": task, "words": words, "tokens": words + 4}
                rows.append({**row, "seconds_median": seconds[4], "seconds": seconds})
    rates = {"hypotheses_per_second": 70.5, "gflops": 61.0, "matrix_gflops": 98.0, "share": 0.622}
    return {"rows": rows, "batched": {"tta": {"tokens": 24, **rates}}, **MACHINE}


MACHINE = {"machine": "Example CPU, 2 cores", "threads": 1}


def write_stages(exp: Path, corpus: str, titles: str, seconds, **more) -> None:
    """Write the manifests of stages with these titles, parted by `; `."""
    common = {"command": f"./run.sh --corpus {corpus}", "options": {"corpus": corpus}, **more}
    for stage, (title, took) in enumerate(zip(titles.split("; "), seconds, strict=True)):
        tree = {"stage": stage, "title": title, **common, "seconds": took}
        dump(tree, exp / f"stages/{stage}.json")


def stages(exp: Path) -> None:
    titles = "get data; prepare text and N-best; subword and binarise; train LMs; score; tune and"
    seconds = (0.4, 2.1, 9.8, 312.5, 148.0, 11.3, None)
    write_stages(exp, "mini", f"{titles} rescore; report", seconds, lmtools="lmtools 0.1.0")
    dump({}, exp / "stages" / "hashes.json")


def criteria(home: Path, utterances: int = 10, seed: int = 2) -> Path:
    """As `experiment`, with LSTMs of all criteria, which rescored lists and lattices, alone and
    with the n-gram, normalised and not, and two T-TAs with perplexities.
    """
    exp, rng = experiment(home, utterances, 2 * utterances), random.Random(seed)
    nbests = list(jsonl.read(home / "data/test/nbest.jsonl.gz"))
    ngram = scores.read(exp / "score/ngram/test.scores")
    names = {f"lstm-{name}": (name, figures) for name, figures in TRAINED.items()}
    names["lstm-bce-mcs-unigram"] = ("bce-mcs", (60.7, 147.2, 0.04, 0.2, 1.6))
    for name, (criterion, figures) in names.items():
        trained(exp, name, criterion, figures, rng)
        noise, spread = figures[4], figures[3] / 2
        plain = judged(rng, nbests, noise, name)
        moved = {
            utt: row + np.array([rng.gauss(0, spread) for _ in row])
            for utt, row in plain.log_prob.items()
        }
        rough = ScoreTable(moved, plain.tokens, {**plain.signature, "normalise": "none"})
        for lm, table in ((name, plain), (f"{name}-unnormalised", rough)):
            scores.write(table, nbests, exp / "score" / lm / "test.scores")
            for more in ({}, {"ngram": ngram}):
                system = "+".join((lm, *more))
                tables = {one: {"test": columns} for one, columns in {lm: table, **more}.items()}
                weights = {"am": 1.0, "lm": 3.0, **dict.fromkeys(tables, 5.0 / len(tables))}
                weights["words"] = 1.0
                signatures = {lm: table.signature, **dict.fromkeys(more, ngram.signature)}
                for prefix, kind in (("", FIRST_PASS), ("lattice-", LATTICES)):
                    saved = Weights(
                        "wer", weights, "am", Dev("dev", "0", 1, 9.0, 9.0),
                        system=facts(signatures, kind),
                    )  # fmt: skip
                    saved.save(exp / "tune" / f"{prefix}{system}" / "weights.json")
                    texts = {nbest.utt: chosen(nbest, weights, tables, "test") for nbest in nbests}
                    kaldi_text.write(texts, exp / "rescore" / f"{prefix}{system}" / "test.txt")
                took = {"lattices": len(nbests), "arcs": 9000, "rescored_arcs": 40000}
                took |= {"speech": 80.0, "lms": dict.fromkeys(tables, "lm")}
                took["signatures"] = {one: dict(said) for one, said in signatures.items()}
                seconds = 2.0 if table is rough else 9.0
                dump({**took, "seconds": seconds}, exp / "lattice" / system / "test.json")
    trained(exp, "tta-softmax", "softmax", (150.0, 14.0, 9.0, 1.7, 0), rng, "tta")
    trained(exp, "tta-bce-nce", "bce-nce", (41.0, 14.4, 0.01, 0.08, 0), rng, "tta")
    return exp


def trained(exp: Path, name: str, criterion: str, figures, rng, model: str = "lstm") -> None:
    """A model directory without weights, and perplexities."""
    pace, ppl, mean, sd, _ = figures
    sampled = criterion.partition("-")[2] in ("mcs", "is", "cps", "nce")
    noise = ", noise: unigram" if name.endswith("unigram") else ", noise: log-uniform"
    home = exp / "lm" / name
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(
        f"model: {model}\nobjective: {'causal' if model == 'lstm' else 'autoencoding'}\ncriterion:"
        f" {criterion}\noutput: {{{f'samples: 1024{noise}' if sampled else ''}}}\narch: {{layers:"
        " 2, dim: 256}\nseed: 1\nvocabulary: {size: 50000, hash: 0123456789abcdef}\n"
    )
    lines, seconds = [], 0.0
    for step in range(50, 3050, 50):
        seconds += 0.05 * pace * rng.lognormvariate(0, 0.02)
        known = {"epoch": step // 1000, "tokens": step * 1024, "seconds": seconds}
        lines.append({"step": step, **known, "train_loss": 5 + 900 / step})
        if step % 300 == 0:
            loss = math.log(ppl) + 2.2 * math.exp(-step / 500) + 0.004 * rng.random()
            lines.append({"step": step, "valid_loss": loss})
    write_lines(home / "metrics.jsonl", lines)
    common = {"kind": "perplexity" if model == "lstm" else "pseudo-perplexity", "oov": 7}
    common["rules"] = "</s> is predicted once a sentence"
    common["log_normaliser"] = {"mean": mean, "sd": sd, "min": mean - 4 * sd, "max": mean + 4 * sd}
    for text, factor in (("valid", 1.0), ("test", 1.17)):
        dump({**common, "word_ppl": factor * ppl}, exp / "ppl" / name / f"{text}.json")


def dump(content, path: Path) -> None:
    write_json(content, path)


def collect_rescoring(home: Path, nbests=(), title=None, **options) -> Experiment:
    return collect(home, "rescoring", nbests, title, **options)


def collect_lms(home: Path, nbests=(), **options) -> Experiment:
    return collect(home, "lm", nbests, **options)


def collect_sts(home: Path, nbests=(), **options) -> Experiment:
    return collect(home, "sts", nbests, **options)


def titled(report: Experiment, start: str) -> Table:
    """The one table of that title, or whose title starts so."""
    tables = make_tables(report)
    exact = [table for table in tables if table.title == start]
    (table,) = exact or [table for table in tables if table.title.startswith(start)]
    return table


def rows_of(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def pictured(report: Experiment, name: str) -> Picture:
    (picture,) = [picture for picture in make_pictures(report) if picture.name == name]
    return picture


def lay_out(picture: Picture, theme=LIGHT) -> tuple[Figure, dict]:
    """The figure as it is laid out on paper, and where its texts stand."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **theme.settings, "backend": "agg"}):
        figure, texts = picture.draw(theme), []
        FigureCanvasAgg(figure).draw()
        for axes in figure.axes:
            low, high = sorted(axes.get_xlim())
            ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            texts += [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
            texts += [text for at, text in ticks if low <= at <= high]
        # of annotations without their threads
        return figure, {text: Text.get_window_extent(text) for text in texts if text.get_text()}


def check_layout(picture: Picture) -> None:
    """No text overlaps another one or leaves the paper."""
    figure, places = lay_out(picture)
    boxes = list(places.items())
    for i, (text, box) in enumerate(boxes):
        assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text
        assert figure.bbox.y0 - 1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1, text
        for other, its in boxes[i + 1 :]:
            wide = min(box.x1, its.x1) - max(box.x0, its.x0)
            assert min(wide, min(box.y1, its.y1) - max(box.y0, its.y0)) < 2, (text, other)  # pixels


@pytest.fixture(scope="session")
def exp(tmp_path_factory) -> Path:
    """A small complete experiment, shared: tests must not change it."""
    return experiment(tmp_path_factory.mktemp("egs") / "made-up")


@pytest.fixture(scope="session")
def compared(tmp_path_factory) -> Path:
    """A small experiment with all training criteria, shared: tests must not change it."""
    return criteria(tmp_path_factory.mktemp("egs") / "made-up")


@pytest.fixture(scope="session")
def reported(exp) -> Path:
    write_report(exp)
    return exp


@pytest.fixture
def fresh(exp, tmp_path) -> Path:
    """A small complete experiment of one's own, to damage."""
    return (
        shutil.copytree(exp.parent, tmp_path / "made-up", ignore=shutil.ignore_patterns("report"))
        / "exp"
    )


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Figures that are not drawn, for tests of what stands around them."""
    monkeypatch.setattr(Picture, "png", lambda picture, theme: b"")
