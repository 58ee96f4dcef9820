"""egs/librispeech/studies/run_books.sh from end to end with n-grams, what its text is made of, and
run_seeds.sh, which goes on from there.
"""

import json
import random
import re
import subprocess
import sys

import jiwer
import pytest
import yaml

TINY = ("--vocab-size", "60", "--valid", "20", "--lms", "", "--leave-out", "b:2-3")
WHISPER = "whisper-base-natural"
LISTS = [f"train-clean-367.{WHISPER}", f"test-other-100.{WHISPER}", f"ocean-dev-300.{WHISPER}"]
LISTS += [f"ocean-test-600.{WHISPER}", "test-other-100.vosk-small"]
EXPERIMENT = {
    "columns": {"mbr": {"utility": "wer", "scale": 0.5}, "ngram4": {}, "ngram5": {}},
    "systems": {"first-pass": [], "mbr": ["mbr"], "ngram4": ["ngram4"], "ngram5": ["ngram5"]},
}


@pytest.fixture(scope="module")
def recipe(librispeech):
    """The recipe with two books and lists of three utterances of each of two speakers."""
    recipe = librispeech("books")
    lines = (recipe.home / "small/train.txt").read_text().lower().splitlines()
    (recipe.home / "books").mkdir()
    (recipe.home / "lists").mkdir()
    (recipe.home / "books/a.txt").write_text("\n".join(lines[:200]) + "\n\n")
    (recipe.home / "books/b.txt").write_text("\n".join(lines[200:]) + "\n")
    for number, part in enumerate(LISTS):
        with (recipe.home / f"lists/{part}.jsonl").open("w") as out:
            for row in range(6):
                ref, others = f"mister {lines[row]}", (f"mr {lines[row]}", f"mister {lines[row]}")
                hyps = [lines[row + 1], *others]
                scores = [{"am": -1.0 - rank, "avg": -0.1 * rank} for rank in range(3)]
                entry = {
                    "utt": f"{number}{row % 2}-1-{row}",
                    "ref": ref,
                    "hyps": [{"text": t, "scores": s} for t, s in zip(hyps, scores, strict=True)],
                }
                out.write(json.dumps(entry) + "\n")
    (recipe.home / "studies/conf/books.yaml").write_text(
        yaml.safe_dump(EXPERIMENT, sort_keys=False)
    )
    return recipe


@pytest.fixture(scope="module")
def whole(recipe):
    recipe("--text-dir", "books", "--nbest-dir", "lists", *TINY, script="studies/run_books.sh")
    return recipe


def test_whole(whole):
    exp = whole.home / "exp/books"
    for case, count in {"native": 6, "non-native": 6, "by-speaker": 12, "vosk": 6}.items():
        chosen = sorted((exp / case / "rescore/ngram4").glob("*.txt"))[-1].read_text().splitlines()
        assert len(chosen) == count
        # mr is written as LibriSpeech's text has it, so that what differs in it alone is one
        assert all("mr" not in line.split() for line in chosen)
        assert (exp / case / "report/RESULTS.md").exists()
        weights = json.loads((exp / case / "tune/ngram4/weights.json").read_text())
        assert ("folds" in json.dumps(weights)) == (case in ("by-speaker", "vosk"))
        assert (weights["features"].get("avg") == 0) == (case != "vosk")
    lists = whole.home / "data/books/by-speaker/dev/nbest.jsonl"
    assert len(json.loads(lists.read_text().splitlines()[0])["hyps"]) == 2


def test_curve(whole, tmp_path):
    # models of two sizes that choose as the n-gram and the first pass do
    exp = whole.home / "exp/books"
    for name, like, loss in (("tta-1K", "ngram4", 5.0), ("tta-2K", "first-pass", 4.0)):
        (tmp_path / "lm" / name).mkdir(parents=True)
        rows = ({"step": 1, "train_loss": 6.0}, {"step": 2, "valid_loss": loss})
        (tmp_path / "lm" / name / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
        place = tmp_path / "by-speaker/rescore"
        for system in (like, name):
            (place / system).mkdir(parents=True, exist_ok=True)
            text = (exp / "by-speaker/rescore" / like / "dev.txt").read_text()
            (place / system / "dev.txt").write_text(text)
    script = [sys.executable, whole.home / "studies/local/books_curve.py", tmp_path]
    script += [whole.home / "data/books"]
    for out in ("one.png", "two.png"):
        command = [*script, tmp_path / out, "by-speaker/dev"]
        subprocess.run(command, env=whole.env, check=True)
    drawn = (tmp_path / "one.png").read_bytes()
    assert drawn.startswith(b"\x89PNG") and drawn == (tmp_path / "two.png").read_bytes()


def test_seeds(whole):
    lms = ("causal-1", "masked-1", "tta-1")
    columns = {"ngram4": {}} | {lm: {} for lm in lms}
    systems = {"first-pass": [], "ngram4": ["ngram4"]}
    for lm in lms:
        kind = lm.partition("-")[0]
        systems |= {lm: [lm], f"{kind}+ngram4-1": [lm, "ngram4"]}
    conf = {"columns": columns, "systems": systems}
    (whole.home / "studies/conf/seeds.yaml").write_text(yaml.safe_dump(conf, sort_keys=False))
    tiny = "steps=1 arch.layers=1 arch.dim=8 arch.ffn=8"
    whole("--lms", " ".join(lms), "--train-opts", tiny, script="studies/run_seeds.sh")
    table = (whole.home / "exp/seeds/seeds.md").read_text().splitlines()
    above, below = (
        {row.split("|")[1].strip(): row.split("|")[2:-1] for row in part if row}
        for part in (table[: table.index("")], table[table.index("") :])
    )
    for case, cell in zip(("native/test", "by-speaker/dev"), above["n-gram (4)"], strict=False):
        home, part = case.split("/")
        lists = whole.home / f"data/books/{case}/nbest.jsonl"
        refs = {row["utt"]: row["ref"] for row in map(json.loads, lists.open())}
        chosen = whole.home / f"exp/seeds/{home}/rescore/ngram4/{part}.txt"
        hyps = dict(line.rstrip("\n").partition(" ")[::2] for line in chosen.open())
        errors = jiwer.wer(list(refs.values()), [hyps[utt] for utt in refs])
        assert float(cell) == round(100 * errors, 2)
    for cells in zip(above["uniLM"], above["T-TA"], below["uniLM"], strict=True):
        causal, tta, difference = (float(cell.split("[")[0]) for cell in cells)
        assert abs(difference - (tta - causal)) < 0.011


def test_text(recipe, tmp_path):
    books = recipe.home / "books"
    script = [
        sys.executable,
        recipe.home / "studies/local/books_text.py",
        tmp_path,
        "20",
        "1K",
        "b:2-3",
    ]
    (tmp_path / "titles").write_text("god mister god\n")
    files = (tmp_path / "titles", books / "a.txt", books / "b.txt")
    subprocess.run([*script, *files], env=recipe.env, check=True)
    a, b = ((books / name).read_text().splitlines() for name in ("a.txt", "b.txt"))
    expected = [line for line in a if line] + b[:1] + b[3:]
    expected = [re.sub(r"(?<!\S)god(?!\S)", "mister god", line) for line in expected]
    random.Random(1).shuffle(expected)
    train = (tmp_path / "train.txt").read_text().splitlines()
    assert (tmp_path / "valid.txt").read_text().splitlines() == expected[:20]
    assert train == expected[20:]
    small = (tmp_path / "train-1K.txt").read_text().splitlines()
    assert small == train[: len(small)]
    words = [len(line.split()) for line in small]
    assert sum(words[:-1]) < 1000 <= sum(words)


@pytest.mark.parametrize("leave_out", ["b", "b:1", "b:x-2"])
def test_bad_ranges(recipe, tmp_path, leave_out):
    script = [
        sys.executable,
        recipe.home / "studies/local/books_text.py",
        tmp_path,
        "2",
        "1K",
        leave_out,
    ]
    done = subprocess.run(
        [*script, recipe.home / "studies/conf/titles.txt", recipe.home / "books/a.txt"],
        env=recipe.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"--leave-out {leave_out}: not NAME:FIRST-LAST")
