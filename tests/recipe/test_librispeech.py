"""egs/librispeech/run.sh from end to end, on a small cut of its mini corpus with tiny models."""

import json
import math
import shlex
import shutil

import pytest
import yaml

TINY = (
    "arch.layers=1 arch.dim=32 arch.heads=2 arch.ffn=64 batch.sentences=16 batch.tokens=null"
    " optim.warmup=5 steps=40 checkpoint_every=10"
)
LATTICE = (
    "--lattice-systems",
    "tta+ngram",
    "--lattice-opts=--tokens 4 --cover-beam 30 --exact 5 --nj 1",
)
OPTIONS = ("--lms", "ngram causal tta", "--train-opts", TINY, "--timed", "all", *LATTICE)
OPTIONS += tuple(shlex.split("--mini small --depth 4 --vocab-size 200 --order 3"))
LMS = ("ngram", "causal", "tta")
SYSTEMS = ("first-pass", *LMS, "tta+ngram", "causal+ngram", "all", "lattice-tta+ngram")
# What a run is in the middle of, by stage: words that it has said, and a file that is there then.
MIDDLE = {
    0: None,
    1: "data/train/text",
    2: "exp/subword",
    3: "exp/lm/causal/checkpoint.safetensors",
    4: "exp/score/ngram/test.scores",
    5: "exp/tune/ngram/weights.json",
    6: "exp/bench/speed.json",
}


@pytest.fixture(scope="module")
def whole(librispeech):
    """The recipe after an uninterrupted run."""
    recipe = librispeech("whole")
    recipe.done = recipe(*OPTIONS)
    return recipe


def outcome(recipe) -> dict[str, bytes]:
    """Everything that a run decides: models, scores, weights, chosen hypotheses."""
    exp = recipe.home / "exp"
    patterns = (
        "lm/*/model.safetensors",
        "lm/ngram/lm.arpa",
        "score/*/*",
        "ppl/*/*",
        "tune/*/*",
        "rescore/*/*",
    )
    files = {
        str(path.relative_to(exp)): path.read_bytes()
        for pattern in patterns
        for path in sorted(exp.glob(pattern))
    }
    # what comes after it is times
    figures = (exp / "report/RESULTS.md").read_bytes().partition(b"## Run time")[0]
    return {**files, "report": figures}


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        manifest = json.loads((exp / f"stages/{stage}.json").read_text())
        assert manifest["finished"] and manifest["options"]["corpus"] == "mini"
        assert all(entry["sha256"] for entry in manifest["outputs"].values())
        assert f"stage {stage} done" in (exp / f"log/stage{stage}.log").read_text()
    made = {path.relative_to(exp).as_posix() for path in exp.rglob("*") if path.is_file()}
    assert {f"tune/{system}/weights.json" for system in SYSTEMS} <= made
    assert {
        f"rescore/{system}/{part}.txt" for system in SYSTEMS for part in ("dev", "test")
    } <= made
    assert {f"score/{lm}/{part}.scores" for lm in LMS for part in ("dev", "test")} <= made
    assert {f"ppl/{lm}/{part}.json" for lm in LMS for part in ("valid", "test")} <= made
    assert {
        "report/RESULTS.md",
        "report/index.html",
        "bench/speed.json",
        "train.bin",
        "subword/normaliser.yaml",
    } <= made
    assert {
        f"lattice/tta+ngram/{part}.{kind}" for part in ("dev", "test") for kind in ("jsonl", "json")
    } <= made
    results = (exp / "report/RESULTS.md").read_text()
    assert "| T-TA + n-gram, lattice |" in results and "Rescoring lattices" in results
    assert "tune and rescore again" not in results  # lattices choose from lists of their own
    assert len((exp / "rescore/all/test.txt").read_text().splitlines()) == 12
    assert not [name for name in made if ".tmp" in name or ".part" in name]


def test_a_stage_starts_from_what_is_there(whole):
    before = outcome(whole)
    done = whole(*OPTIONS, "--stage", 5, "--stop-stage", 5)
    assert "changed since" not in done.stdout + done.stderr
    assert [f"== stage {n}" in done.stdout for n in range(7)] == [n == 5 for n in range(7)]
    assert outcome(whole) == before
    assert whole(*OPTIONS, "--skip-done", "true").stdout.count("is done already: skipped") == 7


def test_the_paper_s_interpolation(whole, librispeech):
    """Beside the same systems as ever, of which nothing changes."""
    before = outcome(whole)
    paper = ("--systems", "conf/paper.yaml", "--expdir", "paper", "--lattice-systems", "")
    recipe = librispeech("paper")
    for folder in ("data", "exp"):
        shutil.copytree(whole.home / folder, recipe.home / ("paper" if folder == "exp" else "data"))
    five = ("--stage", 5, "--stop-stage", 5)
    done = recipe(*OPTIONS, *paper, *five, status=1)
    assert "which of am, lm is the first pass's score" in done.stderr + done.stdout
    recipe(*OPTIONS, *paper, *five, "--first-pass", "am=0.1 lm=1 words=-0.07")
    made = recipe.home / "paper"
    for name in LMS:
        text = (made / f"rescore/{name}/test.txt").read_bytes()
        assert text == before[f"rescore/{name}/test.txt"]
        for system in (f"{name}-interpolated", f"{name}-mean-interpolated"):
            weights = json.loads((made / f"tune/{system}/weights.json").read_text())
            part, column = weights["search"]["lambda"], [*weights["features"]][2]
            expected = {"am": 0.1 * (1 - part), "lm": 1 - part, "words": -0.07 * (1 - part)}
            assert weights["features"] == pytest.approx({**expected, column: part})
            assert column == name + "/token" * ("mean" in system)
            assert (made / f"rescore/{system}/test.txt").exists()


def test_lists_and_lms_that_are_there(whole, librispeech):
    """Without text nothing is trained; by folds all sets are judged."""
    recipe = librispeech("lists")
    (recipe.home / "lists").mkdir()
    for part in ("dev", "test"):
        shutil.copy(recipe.home / f"small/{part}.nbest.jsonl", recipe.home / f"lists/{part}.jsonl")
    lms = " ".join(f"{lm}={whole.home}/exp/lm/{lm}" for lm in ("ngram", "tta"))
    given = ("--corpus", "lists", "--nbest-dir", "lists", "--depth", 4)
    recipe(*given, "--lm-dirs", lms, "--mbr", "wer", "--folds", 3)
    exp, systems = recipe.home / "exp", ("first-pass", "ngram", "tta", "tta+ngram", "mbr")
    assert not (exp / "subword").exists() and not (recipe.home / "data/train").exists()
    for lm in ("ngram", "tta"):
        mine, theirs = (home / f"exp/score/{lm}/dev.scores" for home in (recipe.home, whole.home))
        assert mine.read_text().split("\n")[1:] == theirs.read_text().split("\n")[1:]
    for system in systems:
        weights = json.loads((exp / f"tune/{system}/weights.json").read_text())
        assert sum(len(fold["utterances"]) for fold in weights["folds"]["parts"]) == 22
        texts = [
            (exp / f"rescore/{system}/{one}.txt").read_text() for one in ("all", "dev", "test")
        ]
        assert texts[0] == texts[1] + texts[2]
    results = (exp / "report/RESULTS.md").read_text()
    assert "cross-validated, 3 folds at random: each of its 22 utterances" in results
    assert "## WER after rescoring: all" in results and "## WER after rescoring: dev" in results
    done = recipe(*given, "--lms", "tta", status=2)
    assert "--corpus lists trains no LMs; name those that are there" in done.stderr
    (recipe.home / "lists/dev.jsonl").unlink()
    assert "has no lists called dev to tune on" in recipe(*given, status=2).stderr


def test_clean_tree_says_where_to_start(librispeech):
    recipe = librispeech("clean")
    done = recipe("--mini", "small", "--stage", 3, "--stop-stage", 5, status=1)
    expected = (
        "stage 3 needs data/train/text, which stage 1 writes; run ./run.sh --mini small --stage 0"
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


def test_paper_adds_the_rows_of_table_1(librispeech):
    """LMs over words have their own vocabulary and the penalty that it says."""
    recipe, own = librispeech("paper"), ("--lms", "ngram masked", "--train-opts", TINY)
    options = "--mini small --depth 4 --vocab-size 200 --order 3 --lattice-dir none --stop-stage 5"
    recipe(*own, *shlex.split(options), "--first-pass", "am=0.1 lm=1", "--paper")
    exp = recipe.home / "exp"
    lms = ("ngram", "masked", "bert", "unisanlm", "bisanlm", "masked-intact", "bert-intact")
    forms = ("", "-mean", "-interpolated", "-mean-interpolated")
    systems = {"first-pass", "masked+ngram", *(lm + form for lm in lms for form in forms)}
    assert {path.parent.name for path in exp.glob("tune/*/weights.json")} == systems
    header = {
        lm: json.loads(
            (exp / f"score/{lm}/test.scores").read_text().split("\t")[0].split(" ", 2)[2]
        )
        for lm in lms
    }
    assert [header[lm]["lm"] for lm in lms[1:]] == [
        "masked", "masked", "causal", "masked", "masked-intact", "masked-intact"
    ]  # fmt: skip
    left_out = yaml.safe_load((exp / "word/subword/subword.yaml").read_text())["left_out"]["items"]
    assert {
        lm: float(said["oov"]) for lm, said in header.items() if "oov" in said
    } == pytest.approx(dict.fromkeys(("unisanlm", "bisanlm"), math.log(left_out)), abs=1e-4)


def test_paper_takes_a_bert_that_is_there(librispeech):
    recipe = librispeech("given")
    said = recipe("--help", "--paper", "--bert", "DIR").stdout
    assert "exp/lm/bert" not in said and " DIR " in said
    assert {"exp/score/bert/dev.scores", "exp/score/bert-intact/test.scores"} <= {*said.split()}
    done = recipe("--bert", "DIR", status=2)
    assert "--bert is a row of --paper true; give both" in done.stderr
    assert "--intact names lstm" in recipe("--intact", "lstm", status=2).stderr
