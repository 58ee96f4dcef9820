"""egs/gbw/downstream.sh from end to end: all tasks by all sorts of vectors, on the data that it
makes and on word senses that context tells apart.
"""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from recipe.test_tasks import BANK, INDEX, semcor

TEXT = Path(__file__).parents[2] / "egs/librispeech/mini/train.txt.xz"

CONTEXTS = {  # what stands around each sense of bank
    BANK[0]: ("the people gave silver and gold to the", "of the king"),
    BANK[1]: ("and he stood upon the", "of the river and the water"),
}
CONF = """\
tasks:
  dep: {epochs: 2, hidden: 16, layers: 1, mlp: 16}
  srl: {epochs: 2, hidden: 16, layers: 1, mlp: 16}
  discourse: {epochs: 2, hidden: 8, layers: 1}
  nli: {epochs: 2, hidden: 8, layers: 1}
papers:
  source: Somebody, Table 1
  rows:
    theirs: {dep: 96, wsd: 69.5}
"""
TASKS = {"dep": 40, "srl": 40, "discourse": 60, "nli": 60}


@pytest.fixture
def downstream(copied, shell):
    """A repository with egs/gbw, and a function that runs downstream.sh there."""
    home = copied("gbw")
    (home / "small.yaml").write_text(CONF)

    def run(*options, status=0):
        command = [home / "downstream.sh", "--conf", "small.yaml", "--mini", TEXT, *options]
        done = subprocess.run(command, env=shell, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    run.home = home
    return run


def test_all_tasks(downstream, trained):
    """And the same command goes on with what there is; another seed adds to it."""
    home = downstream.home
    text = home / "data/train/text"
    text.parent.mkdir(parents=True)
    text.write_text("and he stood upon the bank of the river\n" * 50)
    (home / "own.vec").write_text("the 1 0\nking 0 1\n")
    limits = " ".join(f"{task}={count}" for task, count in TASKS.items())
    options = ["--limit", limits, "--vectors", "none majority words", "--lm-dirs"]
    options += [f"tta={trained['tta']} own=own.vec", "--seeds", "1 2"]
    downstream(*options)
    found = json.loads((home / "exp/downstream/results.json").read_text())
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
    page = (home / "exp/downstream/RESULTS.md").read_text()
    assert re.search(r"\| tta +\| \d+\.\d\d ± \d+\.\d\d", page) and "| theirs " in page
    assert page.count("\n## ") == 7
    files = {path: path.stat().st_mtime_ns for path in (home / "exp/downstream").rglob("*.npz")}
    downstream(*options, "--stage", "2", "--stop-stage", "2")
    said = (home / "exp/log/stage2.log").read_text()
    assert "computed" not in said and len(files) == 3 * 4 + 2


def test_epochs_of_an_lm(downstream, trained):
    home = downstream.home
    lm = home / "exp/lm/tta"
    lm.parent.mkdir(parents=True)
    lm.symlink_to(trained["tta"])
    own = home / "exp/lm/own"
    own.mkdir()
    for path in trained["tta"].iterdir():
        (own / path.name).symlink_to(path)
    for epoch in (1, 2):
        (own / f"epoch-{epoch}").symlink_to(trained["tta"])
        ppl = home / f"exp/ppl/own/test-epoch-{epoch}.json"
        ppl.parent.mkdir(parents=True, exist_ok=True)
        ppl.write_text(json.dumps({"word_ppl": 100.0 / epoch}))
    options = ["--tasks", "nli", "--limit", "nli=60", "--seeds", "1", "--vectors", "none own"]
    downstream(*options, "--curve", "own")
    folder = home / "exp/downstream"
    figures = [
        json.loads((folder / f"nli/{name}/1.json").read_text())["figures"]
        for name in ("own", "own-epoch-1", "own-epoch-2")
    ]
    assert figures[0] == figures[1] == figures[2]
    page = (folder / "RESULTS.md").read_text()
    assert re.search(r"\| 2 +\| +\d+\.\d\d \| +50\.0 \|", page)
    assert (folder / "epochs.png").read_bytes().startswith(b"\x89PNG")


def test_senses_that_context_tells_apart(downstream, trained):
    """What follows does as what stands before; a left-to-right LM sees that alone."""
    home = downstream.home
    (home / "senses").mkdir()
    draw = random.Random(1)
    for name, count in (("train", 40), ("test", 20)):
        chosen = [draw.choice(list(CONTEXTS)) for _ in range(count)]
        semcor(
            home / f"senses/{name}.tsv",
            [f"{CONTEXTS[k][0]} bank/bank/NN/{k} {CONTEXTS[k][1]}" for k in chosen],
        )
    (home / "senses/index.sense").write_text(INDEX)
    lms = f"tta={trained['tta']} causal={trained['causal']}"
    options = ["--tasks", "wsd", "--task-dirs", "wsd=senses", "--vectors", "none majority"]
    downstream(*options, "--lm-dirs", lms)
    found = json.loads((home / "exp/downstream/results.json").read_text())["wsd"]
    f1 = {name: said["figures"]["F1"][0] for name, said in found.items()}
    assert f1["tta"] == f1["causal"] == 100 and 20 < f1["none"] < 80
    assert found["tta"]["p"]["none"] < 0.01 and found["tta"]["examples"]["test"] == 20
    page = (home / "exp/downstream/RESULTS.md").read_text()
    assert re.search(r"\| tta +\| +100\.00\\\* \|", page) and "[69.5]" in page


def test_wrong_options(downstream):
    assert "--curve x is no LM of --vectors" in downstream("--curve", "x", status=2).stderr
    (downstream.home / "none").mkdir()
    done = downstream("--task-dirs", "nli=none", "--tasks", "nli", "--vectors", "none", status=1)
    assert "none/train.tsv: not there; give train.tsv or train.jsonl, plain" in done.stdout
