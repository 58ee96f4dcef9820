"""egs/librispeech/studies/run_llms.sh from end to end, with tiny random language models."""

import json

import jiwer
import pytest
import yaml
from writers import random_writer

from lmtools.cli import main

COLUMNS = {"gemma-written": {"lm": "gemma", "written": True}, "smollm-text": {"lm": "smollm"}}
SYSTEMS = {
    "first-pass": {"columns": [], "label": "tuned"},
    "ngram4": ["ngram4"],
    "gemma-written": ["gemma-written"],
    "gemma-written+ngram4": ["gemma-written", "ngram4"],
}


def write_lists(path, lines, speakers):
    """Lists of three hypotheses, the second of which is right, in turns of speakers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for row, line in enumerate(lines[:-1]):
        texts = [lines[row + 1], line, f"{line} {line.split()[0]}"]
        hyps = [
            {"text": text, "written": f"{text.capitalize()}.", "scores": scores}
            for text, scores in zip(
                texts, ({"am": -1.0 - r, "avg": -0.1 * r} for r in range(3)), strict=True
            )
        ]
        rows.append({"utt": f"{speakers[row % len(speakers)]}-{row}", "ref": line, "hyps": hyps})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text)


@pytest.fixture(scope="module")
def whole(librispeech):
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    recipe = librispeech("llms")
    home = recipe.home
    words = [line.lower().split()[:5] for line in (home / "small/train.txt").open()]
    lines = [" ".join(line) for line in words if len(line) == 5]
    (home / "text").write_text("\n".join(lines) + "\n")
    ngram = f"ngram --text {home}/text --order 2 --out {home}/exp/books/lm/ngram4"
    assert main(ngram.split()) == 0
    for seed, name in enumerate(("gemma", "smollm")):
        random_writer(home / "data/llms" / name, seed)
    for place, part in (("non-native/dev", 0), ("non-native/test", 20), ("by-speaker/dev", 40)):
        write_lists(home / f"data/books/{place}/nbest.jsonl", lines[part : part + 7], ["a", "b"])
    base = home / "studies/conf/llms.yaml"
    conf = yaml.safe_load(base.read_text())
    base.write_text(
        yaml.safe_dump(
            conf | {"columns": {"ngram4": {}} | COLUMNS, "systems": SYSTEMS}, sort_keys=False
        )
    )
    recipe(
        "--cases", "non-native by-speaker", "--precision", "float32", script="studies/run_llms.sh"
    )
    return home / "exp/llms"


def read_table(path):
    """The cells of each row below the head."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in path.open()]
    return {row[0]: row[1:] for row in rows[2:]}


def read_texts(path):
    return dict(line.rstrip("\n").partition(" ")[::2] for line in path.open())


@pytest.mark.parametrize(("case", "part"), [("non-native", "test"), ("by-speaker", "dev")])
def test_tables(whole, case, part):
    table = read_table(whole / case / "llms.md")
    path = whole.parents[1] / f"data/books/{case}/{part}/nbest.jsonl"
    lists = [json.loads(line) for line in path.open()]
    refs = [row["ref"] for row in lists]
    first = jiwer.wer(refs, [row["hyps"][0]["text"] for row in lists])
    assert float(table["first of each list"][0]) == round(100 * first, 2)
    for folder, note in (("", ""), ("avg", ", avg")):
        home = whole / case / folder
        for system in SYSTEMS:
            chosen = read_texts(home / f"rescore/{system}/{part}.txt")
            label = "tuned" if system == "first-pass" else system
            wer = jiwer.wer(refs, [chosen[row["utt"]] for row in lists])
            assert float(table[label + note][0]) == round(100 * wer, 2)
        weights = json.loads((home / "tune/ngram4/weights.json").read_text())["features"]
        assert (weights["avg"] == 0) == (not folder)
    # the planned comparison stands alone, all others with the 4-gram have Holm's values
    assert table["gemma-written+ngram4"][-1] == "planned" and not table["ngram4"][-1]
    assert float(table["gemma-written+ngram4, avg"][-1].replace("<", "")) <= 1
