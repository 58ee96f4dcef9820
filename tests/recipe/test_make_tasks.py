"""egs/gbw/tasks/make/make_tasks.py: the constructed data of five tasks are of their formats, say
what their README says, and come out the same.
"""

import hashlib
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recipe.test_tasks import wsd

HOME = Path(__file__).parents[2] / "egs/gbw"
WORDNET = Path("/usr/share/wordnet")
README = (HOME / "tasks/mini/README.md").read_text(encoding="utf-8")
SETS = ("train", "dev", "test")


def make(out, *options, seed="0"):
    return subprocess.run(
        [sys.executable, HOME / "tasks/make/make_tasks.py", out, *map(str, options)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("tasks")
    run = make(out)
    assert run.returncode == 0, run.stderr
    return out


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def unpacked(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def sentences(path: Path) -> list[list[list[str]]]:
    """The sentences of a file in columns, without comments."""
    blocks = path.read_text().strip("\n").split("\n\n")
    lines = ([x for x in block.split("\n") if not x.startswith("# ")] for block in blocks)
    return [[line.split("\t") for line in block] for block in lines]


def test_the_same_bytes_every_time(made, tmp_path):
    assert make(tmp_path, seed="1").returncode == 0
    assert content(tmp_path) == content(made)
    both = [*(f"dep/{name}.conllu" for name in SETS), *(f"srl/{name}.conll09" for name in SETS)]
    both += [f"{task}/{name}.tsv" for task in ("nli", "wsd") for name in SETS]
    both += [*(f"discourse/{name}.rels" for name in SETS), "wsd/index.sense"]
    assert sorted(content(made)) == sorted(both)
    whole = hashlib.sha256(b"".join(content(made).values())).hexdigest()
    assert whole in README  # on any machine


def test_counts_of_the_readme(made):
    for name in SETS:
        trees = sentences(made / f"dep/{name}.conllu")
        predicates = sum(
            row[12] == "Y" for s in sentences(made / f"srl/{name}.conll09") for row in s
        )
        senses = len(wsd.read_semcor(made / f"wsd/{name}.tsv"))
        figures = (
            f"{len(trees):,}", f"{sum(map(len, trees)):,}", f"{predicates:,}",
            f"{len(rows(made / f'discourse/{name}.rels')) - 1:,}",
            f"{len(rows(made / f'nli/{name}.tsv')):,}", f"{senses:,}",
        )  # fmt: skip
        assert f"| {name} | " + " | ".join(figures) + " |" in README
    small = sum(path.stat().st_size for path in (HOME / "tasks/mini").iterdir())
    assert small < 150_000


@pytest.mark.skipif(not (WORDNET / "data.noun").exists(), reason="no wordnet-base of Debian")
def test_embedded_files_come_from_wordnet(tmp_path):
    run = make(tmp_path, "--wordnet", WORDNET)
    assert run.returncode == 0, run.stderr
    for name in ("senses.tsv.xz", "index.sense.xz"):
        assert unpacked(tmp_path / name) == unpacked(HOME / "tasks/mini" / name)
    index = set((WORDNET / "index.sense").read_text().splitlines())
    assert set(unpacked(tmp_path / "index.sense.xz").splitlines()) <= index


@pytest.mark.parametrize(
    ("option", "message"),
    [("--text", "t: 0 relations for train, 1200 are needed"), ("--wordnet", "index.sense: cannot")],
)
def test_what_is_refused(tmp_path, option, message):
    (tmp_path / "t").write_text("IN THE BEGINNING\n")
    run = make(tmp_path / "out", option, tmp_path / "t")
    assert run.returncode == 1 and message in run.stderr and run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
