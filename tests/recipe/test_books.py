"""egs/librispeech/studies/run_books.sh from end to end with n-grams, what its text is made of, and
run_seeds.sh, which goes on from there.
"""

import json
import re
import subprocess
import sys

import jiwer
import pytest
import yaml

TINY = ("--vocab-size", "60", "--valid", "20", "--lms", "")
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


def run_text(recipe, out, *files, valid=20, sets=""):
    script = [sys.executable, recipe.home / "studies/local/books_text.py", out, str(valid), "1K"]
    command = [*script, sets, out / "titles", *files]
    (out / "titles").write_text("god mister god\n")
    return subprocess.run(command, env=recipe.env, capture_output=True, text=True)


def test_text(recipe, tmp_path):
    """Of the second book one line is what a set says, of the third all are: it was read aloud."""
    lines = (recipe.home / "books/b.txt").read_text().splitlines()
    long = [line for line in lines if len(line.split()) > 7]
    books = [long[:50], long[50:90], long[90:130]]
    for name, parts in {"a": books[:2], "b": books[2:]}.items():
        (tmp_path / name).write_text("\n\n".join("\n".join(part) for part in parts) + "\n")
    said = [books[1][7].replace("god", "mister god"), *books[2]]
    (tmp_path / "set").write_text("".join(f"u{n} {line}\n" for n, line in enumerate(said)))
    done = run_text(recipe, tmp_path, tmp_path / "a", tmp_path / "b", sets=str(tmp_path / "set"))
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/b:1-40: a book that shares" in done.stdout
    del books[1][7], books[2]
    books = [[re.sub(r"(?<!\S)god(?!\S)", "mister god", line) for line in part] for part in books]
    valid, train, small = (
        (tmp_path / f"{name}.txt").read_text().splitlines()
        for name in ("valid", "train", "train-1K")
    )
    held, other = books if valid[0] in books[0] else books[::-1]
    assert valid == held[:20] and train != other and sorted(train) == sorted(other)
    assert small == train[: len(small)]
    words = [len(line.split()) for line in small]
    assert sum(words[:-1]) < 1000 <= sum(words) or small == train


def test_one_book_is_too_few(recipe, tmp_path):
    done = run_text(recipe, tmp_path, recipe.home / "books/a.txt", valid=2)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "1 books: no book is left to train on beside 2 sentences held out"
    )
