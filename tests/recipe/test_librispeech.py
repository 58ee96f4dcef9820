"""egs/librispeech's scripts from end to end, on a small cut of its mini corpus with tiny models."""

import json
import shlex
import shutil
import subprocess

import pytest
import yaml

TINY = (
    "arch.layers=1 arch.dim=32 arch.heads=2 arch.ffn=64 batch.sentences=16 batch.tokens=null"
    " optim.warmup=5 steps=40 checkpoint_every=10"
)
OPTIONS = ("--corpus", "small", "--train-opts", TINY)
OPTIONS += tuple(shlex.split("--depth 4 --vocab-size 200 --order 3"))
LATTICES = ("--corpus", "small", "--lattice-opts=--set tokens=4 cover_beam=30 --exact 5")
LMS = ("ngram", "causal", "masked", "tta")
SYSTEMS = ("first-pass", *LMS, "causal+ngram", "masked+ngram", "tta+ngram", "all")
# What a run is in the middle of, by stage: words that it has said, and a file that is there then.
MIDDLE = {
    0: None, 1: "data/train/text", 2: "exp/subword", 3: "exp/lm/causal/checkpoint.safetensors",
    4: "exp/score/ngram/test.scores", 5: "exp/tune/ngram/weights.json", 6: None,
}  # fmt: skip
DECIDED = (
    "lm/*/model.safetensors", "lm/ngram/lm.arpa", "score/*/*", "ppl/*/*", "tune/*/*",
    "rescore/*/*",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(librispeech):
    """The recipe after an uninterrupted run."""
    recipe = librispeech("whole")
    recipe(*OPTIONS)
    return recipe


@pytest.fixture
def after(whole, librispeech):
    """A copy of the recipe as run.sh left it."""
    recipe = librispeech("after")
    for folder in ("data", "exp"):
        shutil.copytree(whole.home / folder, recipe.home / folder)
    return recipe


def outcome(recipe) -> dict[str, bytes]:
    """Everything that a run decides: models, scores, weights, chosen hypotheses."""
    exp = recipe.home / "exp"
    files = {
        str(path.relative_to(exp)): path.read_bytes()
        for pattern in DECIDED
        for path in sorted(exp.glob(pattern))
    }
    # what comes after it is times
    figures = (exp / "report/RESULTS.md").read_bytes().partition(b"## Training")[0]
    return {**files, "report": figures}


def made(recipe, folder: str) -> set[str]:
    """The files below exp/FOLDER, seen from there."""
    home = recipe.home / "exp" / folder
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


def rows(recipe) -> list[str]:
    """The rows of the table of test in the report, without what is not tuned."""
    text = (recipe.home / "exp/report/RESULTS.md").read_text()
    table = text.partition("## WER after rescoring: test\n")[2].partition("\n## ")[0]
    return [line.split(" | ")[0].strip("| ") for line in table.splitlines() if line[:2] == "| "]


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        manifest = json.loads((exp / f"stages/{stage}.json").read_text())
        assert manifest["finished"] and manifest["options"]["corpus"] == "small"
        assert all(entry["sha256"] for entry in manifest["outputs"].values())
        assert f"stage {stage} done" in (exp / f"log/stage{stage}.log").read_text()
    sets = ("dev", "test")
    assert made(whole, "tune") == {f"{system}/weights.json" for system in SYSTEMS}
    assert made(whole, "rescore") == {f"{one}/{part}.txt" for one in SYSTEMS for part in sets}
    assert made(whole, "score") >= {f"{lm}/{part}.scores" for lm in LMS for part in sets}
    assert made(whole, "ppl") == {f"{lm}/{part}.json" for lm in LMS for part in ("valid", "test")}
    assert {"RESULTS.md", "index.html"} <= made(whole, "report")
    assert rows(whole)[-8:] == [
        "n-gram", "uniLM (causal)", "biLM (masked)", "T-TA",
        "uniLM + n-gram", "biLM + n-gram", "T-TA + n-gram", "all LMs",
    ]  # fmt: skip
    assert len((exp / "rescore/all/test.txt").read_text().splitlines()) == 12
    assert not [name for name in made(whole, ".") if ".tmp" in name or ".part" in name]


def test_a_stage_starts_from_what_is_there(whole):
    before = outcome(whole)
    done = whole(*OPTIONS, "--stage", 5, "--stop-stage", 5)
    assert "changed since" not in done.stdout + done.stderr
    assert [f"== stage {n}" in done.stdout for n in range(7)] == [n == 5 for n in range(7)]
    assert outcome(whole) == before
    assert whole(*OPTIONS, "--skip-done", "true").stdout.count("is done already: skipped") == 7


def test_a_dry_run_can_be_pasted(whole, librispeech):
    recipe = librispeech("pasted")
    printed = recipe(*OPTIONS, "--dry-run").stdout
    assert not (recipe.home / "exp").exists()
    shell = ("bash", "-euc", printed)
    subprocess.run(shell, cwd=recipe.home, env=recipe.env, check=True, capture_output=True)
    left, right = outcome(recipe), outcome(whole)
    assert left.pop("report") and right.pop("report") and left == right


def test_clean_tree_says_where_to_start(librispeech):
    recipe = librispeech("clean")
    done = recipe("--corpus", "small", "--stage", 3, "--stop-stage", 5, status=1)
    expected = (
        "stage 3 needs data/train/text, which stage 1 writes; run ./run.sh --corpus small --stage 0"
        " --stop-stage 1\n"
    )
    assert done.stderr == f"./run.sh: {expected}"


def test_killed_in_every_stage(whole, librispeech):
    recipe = librispeech("killed")
    for stage, file in MIDDLE.items():
        process = recipe.start(*OPTIONS, "--skip-done", "true")
        recipe.said(f"== stage {stage}: ", process, file)
        recipe.kill(process)
    recipe(*OPTIONS, "--skip-done", "true")
    assert outcome(recipe) == outcome(whole)


@pytest.mark.parametrize("name, column", [("mbr", "mbr"), ("intact", "masked-intact")])
def test_a_variant_is_a_file(after, name, column):
    """Of which nothing else changes."""
    before = outcome(after)
    after(*OPTIONS, "--stage", 4, "--stop-stage", 5, "--experiment", f"studies/conf/{name}.yaml")
    left = outcome(after)
    assert left.items() >= before.items()
    parts = {f"score/{column}/{part}.scores" for part in ("dev", "test")}
    assert parts | {f"rescore/{column}/test.txt"} <= left.keys() - before.keys()


def test_lattices(after):
    after(*LATTICES, "--nj", 1, script="studies/run_lattices.sh")
    systems = ("ngram", "tta+ngram")
    assert made(after, "lattice") == {
        f"{one}/{part}.{kind}" for one in systems for part in ("dev", "test")
        for kind in ("jsonl", "json")
    }  # fmt: skip
    for one in systems:
        assert (
            len((after.home / f"exp/rescore/lattice-{one}/test.txt").read_text().split("\n")) == 13
        )
    results = (after.home / "exp/report/RESULTS.md").read_text()
    assert rows(after)[-1] == "T-TA + n-gram, lattice" and "Rescoring lattices" in results
    assert "tune and rescore again" not in results  # lattices choose from lists of their own


def test_the_paper_s_rows(after):
    """LMs over words have their own vocabulary and a penalty; nothing of run.sh's changes."""
    before = outcome(after)
    after("--train-opts", TINY, script="studies/run_paper.sh")
    left = outcome(after)
    assert {**left, **before, "report": b""} == {**left, "report": b""}
    columns = (*LMS, "bert", "unisanlm", "bisanlm", "masked-intact", "bert-intact")
    forms = ("", "-mean", "-interpolated", "-mean-interpolated")
    systems = {f"{column}{form}" for column in columns for form in forms} | {*SYSTEMS}
    assert made(after, "tune") == {f"{system}/weights.json" for system in systems}
    assert made(after, "bench") == {"speed.json"}
    header = {
        one: json.loads(
            (after.home / f"exp/score/{one}/test.scores")
            .read_text()
            .split("\n")[0]
            .split(" ", 2)[2]
        )
        for one in columns[4:]
    }
    assert [header[one]["lm"] for one in columns[4:]] == [
        "masked", "causal", "masked", "masked-intact", "masked-intact"
    ]  # fmt: skip
    penalties = {one: float(said["oov"]) for one, said in header.items() if "oov" in said}
    assert penalties == {"unisanlm": 8.46316, "bisanlm": 8.46316}
    for name in LMS:
        for system in (f"{name}-interpolated", f"{name}-mean-interpolated"):
            weights = json.loads((after.home / f"exp/tune/{system}/weights.json").read_text())
            part, column = weights["search"]["lambda"], [*weights["features"]][2]
            first = {"am": 0.10526 * (1 - part), "lm": 1 - part, "words": -0.06627 * (1 - part)}
            assert weights["features"] == pytest.approx({**first, column: part})
            assert column == name + "/token" * ("mean" in system)


def test_a_bert_of_yours_is_not_trained(after):
    """The experiment names it, here by the masked LM of the recipe."""
    names = {"base": "../studies/conf/paper.yaml", "lms": {"bert": "exp/lm/masked"}}
    (after.home / "conf/mine.yaml").write_text(yaml.safe_dump(names))
    options = ("--train-bert", "false", "--experiment", "conf/mine.yaml", "--train-opts", TINY)
    printed = after(*options, "--dry-run", script="studies/run_paper.sh").stdout
    assert "studies/conf/bert.yaml" not in printed and "studies/conf/word/causal.yaml" in printed
    after(*options, "--stop-stage", 4, script="studies/run_paper.sh")
    assert not (after.home / "exp/lm/bert").exists()
    scores = [
        (after.home / f"exp/score/{one}/dev.scores").read_bytes() for one in ("bert", "masked")
    ]
    assert scores[0] == scores[1]


def test_lists_and_lms_that_are_there(whole, librispeech):
    """Without text nothing is trained; by folds all sets are judged."""
    recipe = librispeech("lists")
    (recipe.home / "lists").mkdir()
    for part in ("dev", "test"):
        shutil.copy(recipe.home / f"small/{part}.nbest.jsonl", recipe.home / f"lists/{part}.jsonl")
    experiment = {"base": "experiment.yaml", "folds": 3, "columns": {"mbr": {"utility": "wer"}}}
    experiment["systems"] = {"mbr": ["mbr"]}
    (recipe.home / "conf/three.yaml").write_text(yaml.safe_dump(experiment))
    recipe(
        *("--nbest-dir", "lists", "--depth", 4, "--lm-dir", whole.home / "exp/lm"),
        *("--tune-on", "all", "--experiment", "conf/three.yaml"),
        script="studies/run_lists.sh",
    )
    exp = recipe.home / "exp/lists"
    for lm in LMS:
        mine, theirs = (path / f"score/{lm}/dev.scores" for path in (exp, whole.home / "exp"))
        assert mine.read_text().split("\n")[1:] == theirs.read_text().split("\n")[1:]
    for system in (*SYSTEMS, "mbr"):
        weights = json.loads((exp / f"tune/{system}/weights.json").read_text())
        assert sum(len(fold["utterances"]) for fold in weights["folds"]["parts"]) == 22
        texts = [
            (exp / f"rescore/{system}/{one}.txt").read_text() for one in ("all", "dev", "test")
        ]
        assert texts[0] == texts[1] + texts[2]
    results = (exp / "report/RESULTS.md").read_text()
    assert "cross-validated, 3 folds at random: each of its 22 utterances" in results
    assert "## WER after rescoring: all" in results and "## WER after rescoring: dev" in results
