"""Parts of outputs by --shard and --cmd, joined: the bytes of one run, or a line that says what is
wrong.
"""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import split

import pytest

from lmtools.base.seal import read_json, write_json
from lmtools.cli import main

RUN = Path(__file__).parents[3] / "utils/run.sh"
TEXT = "corpus --text t.txt t.txt --subword sw --out"
NGRAM = "ngram --text t.txt t.txt --order 3 --kenlm none --out"
SCORE = "score --nbest n.jsonl --cache none --device cpu --lm"
COMMANDS = {
    "corpus": TEXT,
    "shards": TEXT.replace("--out", "--shard-size 1K --out"),
    "pairs": TEXT.replace("--sub", "--source t.txt t.txt --sub"),
    "compressed": TEXT.replace("t.txt", "t.txt.gz"),
    "ngram": NGRAM,
    "ngram of a list": NGRAM.replace("--out", "--subword sw --unk --min-count 1 2 --out"),
    **{name: f"{SCORE} lm/{name} --out" for name in ("causal", "tta", "masked")},
    "lstm": f"{SCORE} lm/lstm --out",
}


@pytest.fixture
def home(tiny, trained, tmp_path, monkeypatch):
    """A working directory with what the commands read."""
    monkeypatch.chdir(tmp_path)
    lines = (tiny / "train.txt").read_text().splitlines(keepends=True)
    Path("t.txt").write_text("".join(lines))
    with gzip.open("t.txt.gz", "wt") as stream:
        stream.writelines(lines)
    Path("sw").symlink_to(tiny / "sw")
    Path("lm").symlink_to(tiny / "lm")
    with open("n.jsonl", "w") as lists:
        for number in range(12):
            texts = [line.strip() for line in lines[number * 3 : number * 3 + 4]]
            hyps = [{"text": text} for text in texts]
            lists.write(json.dumps({"utt": f"u#{number}", "hyps": hyps}) + "\n")
    return tmp_path


def made(out: str) -> dict[str, bytes]:
    found = [path for path in Path().rglob("*") if path.is_file() and path.parts[0].startswith(out)]
    return {str(path).replace(out, "", 1): path.read_bytes() for path in found}


@pytest.mark.parametrize("name", COMMANDS)
def test_parts_have_the_bytes_of_one_run(home, capsys, name):
    assert main([*split(COMMANDS[name]), "one"]) == 0
    for number in (3, 1, 2):
        assert main([*split(COMMANDS[name]), "two", "--shard", f"{number}/3"]) == 0
    assert main(split("merge two --kenlm none")) == 0
    assert not list(Path().glob("*-of-*"))
    assert made("one") == made("two")
    assert "two: joined from 3 parts" in capsys.readouterr().err


def part(number: int, count=3, out="two", lm="tta") -> int:
    return main([*split(f"{SCORE} lm/{lm} --out {out} --shard"), f"{number}/{count}"])


def edit(tree: dict, **changes) -> None:
    """Change what a part says of itself."""
    write_json({**tree, **changes}, Path("two.2-of-3/part.json"))


FOREIGN = {
    "missing": (
        lambda: shutil.rmtree("two.2-of-3"),
        "two.2-of-3: 1 of 3 parts are missing; make them by --shard",
    ),
    "not finished": (
        lambda: Path("two.2-of-3/part.json").unlink(),
        "two.2-of-3: 1 of 3 parts are missing",
    ),
    "another split": (lambda: part(1, 4), "two: parts of 3 and of 4; remove those that are not"),
    "a copy": (
        lambda: shutil.copy("two.1-of-3/part.json", "two.2-of-3"),
        "two.2-of-3: a part of another run than two.1-of-3; remove two.2-of-3 and make it again",
    ),
    "damaged": (
        lambda: Path("two.2-of-3/out").write_text("x"),
        "two.2-of-3/out: not as it was written; remove two.2-of-3 and make it again by --shard 2/3",
    ),
    "places elsewhere": (
        lambda: edit(read_json("two.2-of-3/part.json"), files={"../n.jsonl": ""}),
        "two.2-of-3/part.json: names '../n.jsonl'",
    ),
    "another verb": (
        lambda: [
            write_json({**read_json(path), "verb": "corpus"}, path)
            for path in Path().glob("*/part.json")
        ],
        "two.1-of-3/part.json: cannot be joined (KeyError: 'text')",
    ),
    "no verb": (
        lambda: [
            write_json({**read_json(path), "verb": "os"}, path)
            for path in Path().glob("*/part.json")
        ],
        "two.1-of-3/part.json: is of no verb that has parts",
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_parts_that_do_not_belong_together_are_refused(home, capsys, what):
    for number in (1, 2, 3):
        assert part(number) == 0
    spoil, message = FOREIGN[what]
    spoil()
    capsys.readouterr()
    assert main(["merge", "two"]) == 1
    assert message in capsys.readouterr().err
    assert not Path("two").exists() and Path("two.1-of-3/out").exists()


def test_a_part_that_is_there_is_not_made_again(home, capsys):
    assert part(1) == part(1) == 0
    assert "two.1-of-3: is there" in capsys.readouterr().err
    with open("n.jsonl", "a") as lists:
        lists.write(json.dumps({"utt": "new", "hyps": [{"text": "a"}]}) + "\n")
    assert part(1) == part(2) == part(3) == 0  # of other lists now
    assert main(["merge", "two"]) == 0
    assert main([*split(f"{SCORE} lm/tta --out one")]) == 0
    assert Path("one").read_bytes() == Path("two").read_bytes()


def test_refused(home, capsys, monkeypatch):
    for words, message in {
        f"{SCORE} lm/tta --out two --shard 4/3": "'4/3' is no part; write I/N, as 1/4",
        f"{SCORE} lm/tta --out - --shard 1/3": "--shard: of lists and scores in files",
        f"{NGRAM} g --shard 1/2 --text -": "-: no file, which several parts could read",
        f"{SCORE} lm/tta --out two --cmd ./none": "--cmd: ./none: No such file or directory",
        "merge two": "two: no parts of it, two.1-of-N; make them by --shard I/N",
    }.items():
        shutil.rmtree("two.1-of-1", ignore_errors=True)
        try:
            assert main(split(words)) == 1
        except SystemExit as error:
            assert error.code == 2
        assert message in capsys.readouterr().err
    Path("two.1-of-3").symlink_to("/tmp")
    assert part(1) == 1
    assert "two.1-of-3: a link stands where the part belongs" in capsys.readouterr().err


def lmtools(*words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "lmtools", *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_program_makes_the_parts(home, tmp_path):
    """Of an experiment's columns, with one process' bytes; a failed one is named, mended."""
    Path("e.yaml").write_text("columns: {tta: {}, risk: {utility: wer}, causal: {}}\nsystems: {}\n")
    words = split(
        "score --experiment e.yaml --nbest n.jsonl --cache none --device cpu --lm lm/{lm}"
    )
    done = lmtools(*words, "--out", "one.{column}")
    assert done.returncode == 0, done.stderr
    parts = [*words, "--out", "JOB.{column}", "--nj", "2", "--cmd"]  # a name that the program knows
    Path("half.sh").write_text(f'#!/bin/sh\nexec {RUN} "$1" "$2" sh -c \'[ "$0" = {{}} ]\'\n')
    Path("half.sh").chmod(0o755)
    done = lmtools(*parts, "./half.sh")
    assert done.returncode == 1 and "JOB.tta.1-of-2/log" in done.stderr
    assert "./half.sh: status 1; logs: JOB.tta.N-of-2/log; parts that are done are" in done.stderr
    done = lmtools(*parts, str(RUN))
    assert done.returncode == 0, done.stderr
    for name in ("tta", "risk", "causal"):
        assert Path(f"one.{name}").read_bytes() == Path(f"JOB.{name}").read_bytes()
    assert not list(Path().glob("*-of-*"))
