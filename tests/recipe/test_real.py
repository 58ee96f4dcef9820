"""egs/librispeech/local/real.sh from end to end with an n-gram, and what its text is made of."""

import json
import random
import re
import subprocess
import sys

import pytest

TINY = {"--sizes": "1K", "--subword-text": "1K", "--vocab-size": "60", "--valid": "20"}
LMS = {"--lms": "", "--orders": "2", "--combine": "1K", "--leave-out": "b:2-3"}
LISTS = {"--pairs": "dev:test", "--crossed": "dev+test"}


@pytest.fixture(scope="module")
def recipe(librispeech):
    """The recipe with two books and two lists of three utterances of each of two speakers."""
    recipe = librispeech("real")
    lines = (recipe.home / "small/train.txt").read_text().lower().splitlines()
    (recipe.home / "books").mkdir()
    (recipe.home / "lists").mkdir()
    (recipe.home / "books/a.txt").write_text("\n".join(lines[:200]) + "\n\n")
    (recipe.home / "books/b.txt").write_text("\n".join(lines[200:]) + "\n")
    for number, part in enumerate(("dev", "test")):
        with (recipe.home / f"lists/{part}.jsonl").open("w") as out:
            for row in range(6):
                ref, others = f"mister {lines[row]}", (f"mr {lines[row]}", f"mister {lines[row]}")
                hyps = [lines[row + 1], *others]
                scores = [{"am": -1.0 - rank} for rank in range(3)]
                entry = {
                    "utt": f"{number}{row % 2}-1-{row}",
                    "ref": ref,
                    "hyps": [{"text": t, "scores": s} for t, s in zip(hyps, scores, strict=True)],
                }
                out.write(json.dumps(entry) + "\n")
    return recipe


def test_whole(recipe):
    options = [word for pair in (TINY | LMS | LISTS).items() for word in pair]
    command = [recipe.home / "local/real.sh", "--text-dir", "books", "--nbest-dir", "lists"]
    done = subprocess.run(
        [*command, *options], env=recipe.env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    exp = recipe.home / "exp/real"
    for case, count in (("dev-to-test", 6), ("dev+test", 12)):
        chosen = sorted((exp / case / "rescore/ngram2").glob("*.txt"))[-1].read_text().splitlines()
        assert len(chosen) == count
        # mr is written as LibriSpeech's text has it, so that what differs in it alone is one
        assert all("mr" not in line.split() for line in chosen)
        assert (exp / case / "report/RESULTS.md").exists()
    merged = json.loads((exp / "data/dev+test/dev/nbest.jsonl").read_text().splitlines()[0])
    assert len(merged["hyps"]) == 2
    weights = json.loads((exp / "dev+test/tune/ngram2/weights.json").read_text())
    assert "folds" in json.dumps(weights)


def test_curve(recipe, tmp_path):
    # models of two sizes that choose as the n-gram and the first pass do
    exp = recipe.home / "exp/real"
    (tmp_path / "data").symlink_to(exp / "data")
    for name, like, loss in (("tta-1K", "ngram2", 5.0), ("tta-2K", "first-pass", 4.0)):
        (tmp_path / "lm" / name).mkdir(parents=True)
        rows = ({"step": 1, "train_loss": 6.0}, {"step": 2, "valid_loss": loss})
        (tmp_path / "lm" / name / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
        place = tmp_path / "dev+test/rescore"
        for system in (like, name):
            (place / system).mkdir(parents=True, exist_ok=True)
            text = (exp / "dev+test/rescore" / like / "dev.txt").read_text()
            (place / system / "dev.txt").write_text(text)
    script = [sys.executable, recipe.home / "local/real_curve.py", tmp_path]
    for out in ("one.png", "two.png"):
        command = [*script, tmp_path / out, "dev+test/dev:WER of all"]
        subprocess.run(command, env=recipe.env, check=True)
    drawn = (tmp_path / "one.png").read_bytes()
    assert drawn.startswith(b"\x89PNG") and drawn == (tmp_path / "two.png").read_bytes()


def test_text(recipe, tmp_path):
    books = recipe.home / "books"
    script = [sys.executable, recipe.home / "local/real_text.py", tmp_path, "20", "1K", "b:2-3"]
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
    script = [sys.executable, recipe.home / "local/real_text.py", tmp_path, "2", "1K", leave_out]
    done = subprocess.run(
        [*script, recipe.home / "conf/titles.txt", recipe.home / "books/a.txt"],
        env=recipe.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"--leave-out {leave_out}: not NAME:FIRST-LAST")
