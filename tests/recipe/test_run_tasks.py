"""egs/gbw/run_tasks.sh from end to end: all tasks by all sorts of vectors, on the data that it
makes and on word senses that context tells apart.
"""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from recipe.test_tasks import BANK, INDEX, semcor

TEXT = Path(__file__).parents[2] / "egs/librispeech/mini/train.txt.xz"

CONTEXTS = {  # what stands around each sense of bank
    BANK[0]: ("the people gave silver and gold to the", "of the king"),
    BANK[1]: ("and he stood upon the", "of the river and the water"),
}
CONF = """\
tasks:
  dep: {epochs: 2, hidden: 16, layers: 1, mlp: 16, limit: 40}
  srl: {epochs: 2, hidden: 16, layers: 1, mlp: 16, limit: 40}
  discourse: {epochs: 2, hidden: 8, layers: 1, limit: 60}
  nli: {epochs: 2, hidden: 8, layers: 1, limit: 60}
papers:
  source: Somebody, Table 1
  rows:
    theirs: {dep: 96, wsd: 69.5}
"""
TASKS = {"dep": 40, "srl": 40, "discourse": 60, "nli": 60}


@pytest.fixture
def run_tasks(copied, shell):
    """egs/gbw, and a function that runs run_tasks.sh on LMs in directories `lms`."""
    home = copied("gbw")
    (home / "small.yaml").write_text(CONF)
    (home / "exp/lm").mkdir(parents=True)

    def run(*options, lms=(), status=0):
        tree = {"lms": {name: str(path) for name, path in dict(lms).items()}}
        tree["vectors"] = {name: {} for name in dict(lms)}
        (home / "lms.yaml").write_text(yaml.safe_dump(tree))
        settings = ["--conf", "small.yaml", "--mini", TEXT, "--experiment", "lms.yaml"]
        command = [home / "run_tasks.sh", *settings, *options]
        done = subprocess.run(command, env=shell, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    run.home = home
    return run


def test_all_tasks(run_tasks, trained):
    """And the same command goes on with what there is."""
    home = run_tasks.home
    text = home / "data/train/text"
    text.parent.mkdir(parents=True)
    text.write_text("and he stood upon the bank of the river\n" * 50)
    (home / "exp/tasks").mkdir()
    (home / "exp/tasks/own.vec").write_text("the 1 0\nking 0 1\n")
    options = ["--vectors", "none majority words tta own", "--against", "tta", "--seeds", "1 2"]
    run_tasks(*options, lms={"tta": trained["tta"]})
    found = json.loads((home / "exp/tasks/results.json").read_text())
    assert list(found) == [*TASKS, "wsd"]
    learned = {"none", "words", "tta", "own"}
    for task, systems in found.items():
        plain = {"majority"} if task in ("discourse", "nli", "wsd") else set()
        assert systems.keys() == ({"none", "tta"} if task == "wsd" else learned) | plain
        for name, said in systems.items():
            figures = next(iter(said["figures"].values()))
            assert len(figures) == (1 if task == "wsd" or name == "majority" else 2)
            assert all(0 < figure < 100 for figure in figures), (task, name)
            assert said["p"].keys() == {"none", "tta"} - {name}
            assert said["examples"]["train"] == TASKS.get(task, said["examples"]["train"])
    page = (home / "exp/tasks/RESULTS.md").read_text()
    assert re.search(r"\| tta +\| \d+\.\d\d ± \d+\.\d\d", page) and "| theirs " in page
    assert page.count("\n## ") == 7
    made = {path: path.read_bytes() for path in (home / "exp/tasks").rglob("*.npz")}
    run_tasks(*options, "--stage", "4", "--stop-stage", "4", lms={"tta": trained["tta"]})
    assert len(made) == 3 * 4 + 2 and all(path.read_bytes() == old for path, old in made.items())


def test_epochs_of_an_lm(run_tasks, trained):
    home = run_tasks.home
    for epoch in (1, 2):
        ppl = home / f"exp/ppl/own/test-epoch-{epoch}.json"
        ppl.parent.mkdir(parents=True, exist_ok=True)
        ppl.write_text(json.dumps({"word_ppl": 100.0 / epoch}))
    names = ("own", "own-epoch-1", "own-epoch-2")
    options = ["--tasks", "nli", "--seeds", "1", "--vectors", f"none {' '.join(names)}"]
    run_tasks(*options, "--curve", "own", lms=dict.fromkeys(names, trained["tta"]))
    folder = home / "exp/tasks"
    figures = [
        json.loads((folder / f"results/nli/{name}/1.json").read_text())["figures"] for name in names
    ]
    assert figures[0] == figures[1] == figures[2]
    page = (folder / "RESULTS.md").read_text()
    assert re.search(r"\| 2 +\| +\d+\.\d\d \| +50\.0 \|", page)
    assert (folder / "epochs.png").read_bytes().startswith(b"\x89PNG")


def test_senses_that_context_tells_apart(run_tasks, trained):
    """What follows does as what stands before; a left-to-right LM sees that alone."""
    home = run_tasks.home
    (home / "real/wsd").mkdir(parents=True)
    draw = random.Random(1)
    for name, count in (("train", 40), ("test", 20)):
        chosen = [draw.choice(list(CONTEXTS)) for _ in range(count)]
        semcor(
            home / f"real/wsd/{name}.tsv",
            [f"{CONTEXTS[k][0]} bank/bank/NN/{k} {CONTEXTS[k][1]}" for k in chosen],
        )
    (home / "real/wsd/index.sense").write_text(INDEX)
    options = ["--tasks", "wsd", "--task-dir", "real", "--vectors", "none majority tta causal"]
    run_tasks(*options, lms={name: trained[name] for name in ("tta", "causal")})
    found = json.loads((home / "exp/tasks/results.json").read_text())["wsd"]
    f1 = {name: said["figures"]["F1"][0] for name, said in found.items()}
    assert f1["tta"] == f1["causal"] == 100 and 20 < f1["none"] < 80
    assert found["tta"]["p"]["none"] < 0.01 and found["tta"]["examples"]["test"] == 20
    page = (home / "exp/tasks/RESULTS.md").read_text()
    assert re.search(r"\| tta +\| +100\.00\\\* \|", page) and "[69.5]" in page


def test_data_that_are_not_there(run_tasks):
    (run_tasks.home / "real/nli").mkdir(parents=True)
    done = run_tasks("--task-dir", "real", "--tasks", "nli", "--vectors", "none", status=1)
    assert "real/nli/train.tsv: not there; give train.tsv or train.jsonl, plain" in done.stdout
