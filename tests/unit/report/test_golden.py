"""Reports as they are written, with what scripts of recipes add, against golden/KIND.md:
RESULTS.md, what figures say to those who cannot see them, and what the verb says. A file
that is deleted is written again.
"""

import html
import importlib
import json
import re
from pathlib import Path

import pytest
from unit.report.conftest import criteria, dump, experiment
from unit.report.lm.toys import lm_experiment
from unit.report.sts.toys import sts_experiment

from lmtools.base.seal import write_json
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.report import write_report
from lmtools.report.style import load_style
from lmtools.version import __version__

GOLDEN, EGS = Path(__file__).with_name("golden"), Path(__file__).parents[3] / "egs"
TOOK = {"lattices": 3, "arcs": 1200, "rescored_arcs": 4800, "speech": 60.0, "seconds": 1.5}
NEAR = {"approximation": {"word_mean": 0.0456, "sentence_mean": 0.5}}


def run(*words) -> None:
    assert main([*map(str, words)]) == 0


def means(home: Path) -> Path:
    """Two systems of means, and an interpolation with the first pass, by the verbs."""
    exp = experiment(home)
    plain, fixed = ("lengths=words,log-words",), ("form=interpolation", "--fix", "am=0.1", "lm=1")
    systems = {
        "tta-mean": ("tta/token", "tta", plain),
        "ngram-mean": ("ngram/token", "ngram", plain),
        "tta-interpolated": ("tta", "tta", fixed),
    }
    for system, (column, lm, settings) in systems.items():
        weights, out = exp / f"tune/{system}/weights.json", exp / f"rescore/{system}/test.txt"
        dev, test = (
            (
                *("--nbest", home / f"data/{name}/nbest.jsonl.gz"),
                *("--scores", f"{column}={exp}/score/{lm}/{name}.scores"),
            )
            for name in ("dev", "test")
        )
        run("tune", *dev, "--set", *settings, "--out", weights)
        run("rescore", *test, "--weights", weights, "--out", out)
    return exp


def bleu(home: Path) -> Path:
    """A metric that is no error rate."""
    exp = experiment(home)
    for path in exp.glob("tune/*/weights.json"):
        tree = json.loads(path.read_text()) | {"metric": "bleu"}
        tree["dev"]["bleu"] = tree["dev"].pop("wer")
        write_json(tree, path)
    return exp


def both(home: Path) -> Path:
    """Language models by themselves, of all kinds of perplexity, and lists rescored with them."""
    path = experiment(home) / "ppl/tta/test.json"
    dump({**json.loads(path.read_text()), "kind": "two-way perplexity"}, path)
    return lm_experiment(home, grids=())


def sets(home: Path) -> Path:
    """Two test sets and a part of dev that weights were not tuned on alone; a hypothesis that is
    missing, texts that the weights do not choose, lattices with and without speech, time and
    differences, and undefined scores of `lmtools evaluate`.
    """
    exp, data = experiment(home), home / "data"
    dev, test = (list(jsonl.read(data / name / "nbest.jsonl.gz")) for name in ("dev", "test"))
    parts = {"dev-a": dev[:6], "test-a": test[:12], "test-b": test[12:]}
    for name, nbests in parts.items():
        jsonl.write(nbests, data / name / "nbest.jsonl")
        for system in exp.glob("rescore/*"):
            texts = kaldi_text.read(system / f"{name[:-2]}.txt")
            known = nbests[system.name == "ngram" and name == "test-a" :]
            texts = {nbest.utt: texts[nbest.utt] for nbest in known}
            kaldi_text.write(texts, system / f"{name}.txt")
    (data / "test/nbest.jsonl.gz").unlink()
    path = exp / "tune/tta/weights.json"
    tree = json.loads(path.read_text())
    tree["dev"]["wer"] += 1
    write_json(tree, path)
    lattices = {"ngram": {}, "tta": {**NEAR, "seconds": 6.0}}
    lattices |= {"causal": {"speech": 0.0}, "mine": {"seconds": 0.0}}
    for system, took in lattices.items():
        (exp / "lattice" / system).mkdir(parents=True)
        write_json({**TOOK, **took}, exp / f"lattice/{system}/test-a.json")
    scored = {"metric": "wer", "signature": "s", "score": 50.0, "interval": [0, 100]}
    scored["by label"] = [{"name": "CH", "score": None}, {"name": "SW", "score": 50.0}]
    (exp / "scored/tta").mkdir(parents=True)
    for place, more in (("test-a", {}), ("test-b", {"score": None, "interval": None})):
        (exp / f"scored/tta/{place}.json").write_text(json.dumps(scored | more))
    return exp


KINDS = {  # the recipe, what makes an experiment of it, scripts that add to its report
    "rescoring": ("librispeech", experiment, ("paper_tables",)),
    "criteria": ("librispeech", criteria, ("paper_tables", "criteria_tables")),
    "lm": ("gbw", lm_experiment, ("paper_tables", "grid_tables")),
    "sts": ("stsb", sts_experiment, ("paper_tables",)),
    "means": ("librispeech", means, ()),
    "bleu": ("librispeech", bleu, ()),
    "both": ("gbw", both, ()),
    "sets": ("librispeech", sets, ()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_the_golden_one(kind, tmp_path, undrawn, capsys):
    if kind == "sts":
        pytest.importorskip("lmtools.vectors")
    recipe, make, scripts = KINDS[kind]
    exp, conf = make(tmp_path / recipe), EGS / recipe / "conf/report.yaml"
    what = "lm" if kind == "both" else None
    text, notes = write_report(exp, what=what, style=load_style(conf))
    for name in scripts:
        more = (conf.with_name("papers.yaml"),) * (name != "criteria_tables")
        importlib.import_module(name).main(exp, conf, *more)
    results, page = ((exp / f"report/{name}").read_text() for name in ("RESULTS.md", "index.html"))
    assert page.count("<table") == results.count("\n## ") - ("\n## Absent" in results) - 1
    pictures = re.findall(r'<img src="[^"]*" alt="([^"]*)"', page)
    assert len(pictures) == results.count("\n![")
    titles = [line for line in text.splitlines() if f"\n## {line}\n" in results]
    said = [*map(html.unescape, pictures), *notes, *titles]
    found = results + "".join(f"\n{line}\n" for line in said)
    for old, new in ((__version__, "VERSION"), (str(tmp_path), "TMP")):
        found = found.replace(old, new)
    golden = GOLDEN / f"{kind}.md"
    if not golden.exists():
        golden.write_text(found)
    assert found == golden.read_text()
