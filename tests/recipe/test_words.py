"""egs/librispeech/studies/run_words.sh from end to end, on a small cut of the mini corpus with tiny
models; the settings and experiments of word LMs.
"""

import json
import shlex
from pathlib import Path

import pytest
import yaml

from lmtools.base.config import from_yaml
from lmtools.formats import scores
from lmtools.models.settings import Settings
from lmtools.rescoring.experiment import read_experiment

CONF = Path(__file__).parents[2] / "egs/librispeech/studies/conf"
LMS = ("lstm-softmax", "lstm-bce-mcs-unigram")
RAW = f"{LMS[1]}-unnormalised"
EXPERIMENT = {
    "columns": {"ngram": {}, LMS[0]: {}, LMS[1]: {}, RAW: {"lm": LMS[1], "normalise": "none"}},
    "systems": {"first-pass": [], LMS[0]: [LMS[0]], f"{RAW}+ngram": [RAW, "ngram"]},
}
TINY = "arch.dim=16 arch.units=24 batch.sentences=32 batch.tokens=null optim.warmup=5 steps=30"
OPTIONS = ("--train-opts", TINY, "--lattices", LMS[1], "--lattice-opts=--set tokens=2 --nj 1")
OPTIONS += ("--confs", " ".join(f"studies/conf/words/{name}.yaml" for name in LMS))
OPTIONS += (*shlex.split("--experiment tiny.yaml --order 2 --nj 1"),)


@pytest.fixture(scope="module")
def whole(librispeech):
    """The recipe after an uninterrupted run."""
    recipe = librispeech("words")
    recipe(*shlex.split("--corpus small --depth 4 --stop-stage 1"))
    recipe(*shlex.split("--corpus small --stop-stage 1"), script="studies/run_lattices.sh")
    (recipe.home / "tiny.yaml").write_text(yaml.safe_dump(EXPERIMENT, sort_keys=False))
    recipe(*OPTIONS, script="studies/run_words.sh")
    return recipe


def test_all_systems(whole):
    exp = whole.home / "exp/words"
    made = {path.relative_to(exp).as_posix() for path in exp.rglob("*") if path.is_file()}
    columns, systems = (EXPERIMENT[key] for key in ("columns", "systems"))
    assert {f"score/{name}/{part}.scores" for name in columns for part in ("dev", "test")} <= made
    systems = {*systems, f"lattice-{LMS[1]}+ngram", f"lattice-{RAW}+ngram"}
    assert {path.name for path in (exp / "tune").iterdir()} == systems
    assert {f"rescore/{system}/test.txt" for system in systems} <= made
    assert not [name for name in made if ".tmp" in name]
    assert (exp / "stages/words-6.json").exists() and not (exp / "stages/words-1.json").exists()


def test_settings(whole):
    exp = whole.home / "exp/words"
    settings = {name: yaml.safe_load((exp / f"lm/{name}/config.yaml").read_text()) for name in LMS}
    found = {
        name: (tree["model"], tree["criterion"], tree["output"].get("noise"))
        for name, tree in settings.items()
    }
    assert found == {LMS[0]: ("lstm", "softmax", None), LMS[1]: ("lstm", "bce-mcs", "unigram")}
    words = [line.split("\t") for line in (exp / "subword/vocab.txt").read_text().splitlines()]
    counts = {int(count) for _, count in words}
    assert len(words) > 100 and counts >= {2, 3} and min(counts) == 2


def test_unnormalised_scores_differ_and_say_so(whole):
    exp = whole.home / "exp/words"
    full, raw = (scores.read(exp / f"score/{name}/test.scores") for name in (LMS[1], RAW))
    assert raw.signature["normalise"] == "none" and "normalise" not in full.signature
    values = [
        (a, b)
        for utt in full.log_prob
        for a, b in zip(full.log_prob[utt], raw.log_prob[utt], strict=True)
    ]
    assert all(abs(a - b) > 1e-3 for a, b in values)
    lattices = [
        json.loads((exp / f"lattice/{name}+ngram/test.jsonl").read_text().splitlines()[0])
        for name in (LMS[1], RAW)
    ]
    columns = [{name for hyp in lattice["hyps"] for name in hyp["scores"]} for lattice in lattices]
    assert LMS[1] in columns[0] - columns[1] and RAW in columns[1] - columns[0]


def test_report(whole):
    text = (whole.home / "exp/words/report/RESULTS.md").read_text()
    section = text.partition("Output layers and training criteria")[2]
    assert section and "unnormalised" in section
    assert "| CE LSTM " in text and "BCE-MCS LSTM, unigram, unnormalised + n-gram" in text


def test_later_stages_and_skipping(whole):
    again = whole(*OPTIONS, "--skip-done", "--stage", 3, script="studies/run_words.sh")
    assert again.stdout.count("is done already: skipped") == 4
    assert "changed" not in again.stdout + again.stderr
    with (whole.home / "studies/conf/word/lstm.yaml").open("a") as base:
        base.write("# a comment\n")
    stale = whole(*OPTIONS, "--stop-stage", 2, script="studies/run_words.sh")
    assert "warning: studies/conf/word changed since stage 3 read it" in stale.stderr


@pytest.mark.parametrize(
    "name, folders, count",
    [
        ("words", ["words"], 20),
        ("words_printed", ["words", "words_printed"], 23),
        ("words_full", ["words_full"], 9),
        ("swbd", ["swbd"], 14),
    ],
)
def test_each_lm_of_an_experiment_has_its_settings(name, folders, count):
    plan = read_experiment(CONF / f"{name}.yaml")
    files = {path.stem: path for folder in folders for path in (CONF / folder).glob("*.yaml")}
    assert set(plan.trained) == {"ngram", *files} and len(files) == count
    assert {f"{name}+ngram" for name in plan.columns if name != "ngram"} <= set(plan.systems)
    for lm, path in files.items():
        settings = from_yaml(Settings, path)
        model, _, criterion = lm.partition("-")
        assert settings.model == model and criterion.startswith(settings.criterion)
        size = 8192 if name in ("words_full", "swbd") else 1024
        assert settings.output.get("samples", size) == size


def test_mse(whole):
    """Trainings from the start and from the NCE model; the table has a row each, best first."""
    options = ("--train-opts", TINY, "--nj", 1, "--precision", "float32")
    runs = ("--runs", "mse-sigmoid@8e-3 mse-rival@2e-3", "--continued", "mse@1e-6 bce-nce@1e-6")
    whole(*options, *runs, script="studies/run_mse.sh")
    exp = whole.home / "exp/mse"
    names = {"softmax", "bce", "bce-nce", "mse-sigmoid@8e-3", "mse-rival@2e-3"}
    names |= {"nce-mse@1e-6", "nce-bce-nce@1e-6"}
    found = {
        path.parent.name: json.loads(path.read_text())["word_ppl"]
        for path in exp.glob("ppl/*/test.json")
    }
    assert found.keys() == names
    # at a rate of nearly nothing they are the NCE model still
    assert found["nce-bce-nce@1e-6"] == pytest.approx(found["bce-nce"], rel=1e-3)
    assert found["nce-mse@1e-6"] != found["nce-bce-nce@1e-6"]
    rows = [line.strip("| ").split(" | ") for line in (exp / "perplexities.md").open()][2:]
    assert [float(row[4]) for row in rows] == [round(x, 2) for x in sorted(found.values())]
    assert {(row[0], row[1], row[3]) for row in rows} >= {
        ("mse-sigmoid", "1", "0.008"), ("mse", "0.001", "0.002"), ("mse", "1", "1e-06"),
    }  # fmt: skip
    assert sum(row[2] == "NCE" for row in rows) == 2
