"""egs/gbw/tasks/make/real_tasks.py: sentences of WikiText and of news, SNLI and SICK together."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "egs/gbw/tasks/make/real_tasks.py"
WIKI = """
 = A title =
 One well @-@ known sentence . Two <unk> of them . " Three , " she said , and 1 @,@ 000 . Four .
"""


def run(*args, status=0):
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, args)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr.strip()


def lines(path) -> list[str]:
    return path.read_text().splitlines()


def test_text(tmp_path):
    (tmp_path / "wiki").write_text(WIKI)
    news = [f"news item {number}" for number in range(4010)]
    (tmp_path / "one").write_text("\n".join([*news[:2000], ""]))
    (tmp_path / "two").write_text("\n".join([*news[2000:], news[0], ""]))
    args = ["text", tmp_path / "out", "--wiki", tmp_path / "wiki", "--news"]
    run(*args, tmp_path / "one", tmp_path / "two")
    train, valid, test = (
        lines(tmp_path / f"out/{name}.txt") for name in ("train", "valid", "test")
    )
    assert (len(valid), len(test)) == (1500, 2500)
    wiki = {"One well-known sentence .", '" Three , " she said , and 1,000 .'}
    assert wiki < set(train) and len(train) == len(set(train))
    assert set(train) - wiki | set(valid) | set(test) == set(news)
    assert "give more than 4000" in run(*args, tmp_path / "one", status=1)


@pytest.mark.parametrize("fields", [5, 4])
def test_pairs(tmp_path, fields):
    for name, count in (("dev", 1510), ("test", 3)):
        made = [f"neutral\t{name} {number}\tan other" for number in range(count)]
        (tmp_path / name).write_text("\n".join([*made, ""]))
    for name in ("a", "b", "c"):
        rows = [["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]]
        rows += [[str(n), f"{name} {n}", "an other", "3.5", "ENTAILMENT"] for n in range(4)]
        text = "".join("\t".join(row[:fields]) + "\n" for row in rows)
        (tmp_path / name).write_text(text)
    args = ["pairs", tmp_path / "out", "--snli", tmp_path / "dev", tmp_path / "test", "--sick"]
    said = run(*args, *(tmp_path / name for name in "abc"), status=int(fields < 5))
    if fields < 5:
        assert said.endswith("/a:1: 4 fields; give SICK's 5")
        assert not (tmp_path / "out").exists()
        return
    snli, sick = tmp_path / "out/snli", tmp_path / "out/sick"
    assert lines(snli / "train.tsv") == lines(sick / "train.tsv")
    asked = sorted([f"neutral\tdev {n}\tan other" for n in range(8)])
    assert sorted(lines(snli / "train.tsv")) == sorted(
        [*asked, *(f"entailment\ta {n}\tan other" for n in range(4))]
    )
    assert len(lines(snli / "dev.tsv")) == 1502 and len(lines(snli / "test.tsv")) == 3
    assert [lines(sick / f"{name}.tsv")[0] for name in ("dev", "test")] == [
        "entailment\tb 0\tan other",
        "entailment\tc 0\tan other",
    ]
