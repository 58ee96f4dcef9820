"""benchmarks/gpu: what is packed on a CPU, and the calls of a loan in their order, cut small."""

import itertools
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from toys import sentences

from lmtools.models.checkpoint import load_model

GRID = {"title": "One", "runs": {"one": {"settings": ["optim.lr=1"]}}}
GCNN = {
    "model": "gcnn", "objective": "causal", "arch": {"dim": 8, "blocks": ["[3, 12]"]},
    "batch": {"sentences": 4}, "precision": "float32",
}  # fmt: skip


def write(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def loan(copied, shell):
    """A function that runs a script of benchmarks/gpu; the repository, with what recipes left."""
    gbw = copied("gbw")
    home = gbw.parents[1]
    text = sentences(400, 1)
    for name, lines in {"train": text, "train-10M": text, "valid": text[:20]}.items():
        write(home / f"books/{name}.txt", lines)
    for case in ("native/dev", "vosk/dev"):
        lists = [{"utt": f"u{n}", "ref": line, "hyps": [{"text": other, "scores": {"am": 0.0}}
                 for other in (line, text[n + 9])]} for n, line in enumerate(text[:4])]  # fmt: skip
        write(home / f"books/{case}/nbest.jsonl", map(json.dumps, lists))
        write(home / f"books/{case}/text", (f"{one['utt']} {one['ref']}" for one in lists))
    for part in ("dev", "test"):
        for name in ("stsb", "sick"):
            pairs = (
                f"{a}\t{b}\t{2 * n % 5}" for n, (a, b) in enumerate(itertools.pairwise(text[:6]))
            )
            write(home / f"pairs/{name}/{part}/pairs.tsv", pairs)
    write(gbw / "tiny/grids/one.yaml", [yaml.safe_dump(GRID)])
    write(gbw / "tiny/gcnn.yaml", [yaml.safe_dump(GCNN)])
    for part in ("train", "valid", "test"):
        write(gbw / f"data/wikitext2/{part}/text", text[:60])
    env = {
        **shell, "device": "cpu", "trial": "true", "books": "books", "pairs": "pairs", "nj": "1",
        "sets": "native/dev vosk/dev", "pieces": "40", "wheels": "", "work": str(home / "machine"),
        "out": str(home / "out"), "gates": "one", "conf": "tiny", "seeds": "2",
        "train_seconds": "1.5", "wait_seconds": "1",
    }  # fmt: skip
    words = gbw / "exp/wikitext2/vocabulary/words"
    subprocess.run(["git", "init", "-q", home], check=True)
    made = "subword --text books/train.txt --type word --out"
    subprocess.run(["lmtools", *made.split(), words], cwd=home, env=env, check=True)
    for part in ("train", "valid"):
        made = f"corpus --text books/{part}.txt --subword {words} --out"
        out = gbw / f"exp/wikitext2/corpus/words/{part}.bin"
        subprocess.run(["lmtools", *made.split(), out], cwd=home, env=env, check=True)

    def run(script: str, status=0) -> str:
        command = [home / f"benchmarks/gpu/{script}.sh"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=home)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    run.home = home
    return run


def test_calls_come_to_scores_and_a_training_that_has_not_ended_is_not_reported(loan):
    home, said = loan.home, loan("prepare")
    assert "call 3:" in said and "carries too much" not in said
    assert "call 1 carries" not in said
    said = loan("call1")
    rate = json.loads((home / "out/rate.json").read_text())
    assert [row["together"] for row in rate["rows"]] == [2] and "42 layers" in said
    assert all(row["steps"] > 0 for row in rate["rows"])
    batched = json.loads((home / "out/batched.json").read_text())
    assert {tuple(row["times"]) for row in batched["ratios"]} == {
        ("masked", "masked-shared", "causal")
    }
    # what this machine is fast at now is not the test's business
    for row in rate["rows"]:
        row["each"] = [{"model": "tta", "tokens_per_second": 1000.0}]
    (home / "machine/rate.json").write_text(json.dumps(rate))
    loan("call2")
    with tarfile.open(home / "out/gates.tar.xz") as packed:
        names = packed.getnames()
    assert "gpu-2/ppl/one-one/test.json" in names
    loan("call3")
    lms = (home / "machine/lms").read_text().split()
    assert lms[:2] == ["tta", "masked"]
    for lm in lms:
        done = json.loads((home / f"machine/lm/{lm}.done").read_text())
        assert load_model(home / "machine/lm" / lm) and done["steps"] in (20, 21)
    (home / "machine/lm/masked.done").unlink()
    said = loan("call4")
    assert "masked: has not ended; it is not reported" in said
    with tarfile.open(home / "out/scores.tar.xz") as packed:
        names = {Path(name).name for name in packed.getnames()}
    assert {"tta.native-dev.scores", "tta.vosk-dev.ppl.json", "tta.sick-test.sts.json"} <= names
    assert "lists.json" in names and not any(name.startswith("masked.") for name in names)
