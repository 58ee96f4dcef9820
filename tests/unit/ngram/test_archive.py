"""lm.npz: says what lm.arpa says, is read in its place with equal bytes, and refused where it is
damaged or of another lm.arpa.
"""

import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from lmtools import cli
from lmtools.base.errors import UserError
from lmtools.ngram import Description, arpa, arrays, build, derived
from lmtools.ngram.archive import MODEL, NAME, VOCABULARY
from lmtools.text import Normaliser

FILES = "lm.arpa", NAME, "config.yaml"


@pytest.fixture(scope="module")
def models(text, lines, tmp_path_factory):
    """Three models: of order 3, of order 4 with cut-offs and other words, of order 1."""
    home = tmp_path_factory.mktemp("models")
    (home / "other.txt").write_text("\n".join(f"x{i % 7} {line}" for i, line in enumerate(lines)))
    build([text], 3, home / "a", Normaliser(), kenlm="none")
    build([home / "other.txt"], 4, home / "b", Normaliser(), kenlm="none", min_counts=(1, 1, 2))
    build([text], 1, home / "c", Normaliser(), kenlm="none")
    return home


def without_archives(models, home):
    """Copies of the models that have no lm.npz."""
    shutil.copytree(models, home)
    for path in home.glob(f"*/{NAME}"):
        path.unlink()
    return home


@pytest.mark.parametrize("name", ["a", "b", "c", "mixed", "pruned"])
def test_it_says_what_the_text_says(models, tmp_path, name):
    if name == "mixed":
        derived.mix([models / "b", models / "a"], tmp_path / name, [0.4], kenlm="none")
    if name == "pruned":
        derived.prune(models / "a", tmp_path / name, 1e-3, kenlm="none")
    home = models / name if len(name) == 1 else tmp_path / name
    orders, above = arpa.read(home / "lm.arpa"), []
    with np.load(home / NAME) as archive, zipfile.ZipFile(home / NAME) as members:
        words = members.read(VOCABULARY).decode().split("\n")[:-1]
        for n, order in enumerate(orders[: Description.load(home).order], 1):
            rows = archive[str(n)]
            below, above = above, list(order)
            assert [words[i] for i in rows["word"]] == [gram[-1] for gram in above]
            for row, (gram, (prob, backoff)) in zip(rows, order.items(), strict=True):
                assert row["prob"] == round(prob * 1e6)
                assert "backoff" not in rows.dtype.names or row["backoff"] == round(backoff * 1e6)
                assert n == 1 or below[row["context"]] == gram[:-1]
                shorter = below[row["suffix"]] if n > 1 and row["suffix"] >= 0 else gram[1:]
                assert shorter == gram[1:]
                assert n == 1 or (row["suffix"] >= 0) == (gram[1:] in below)


def make_all(home, out):
    """Mixtures and pruned models, of these models and of each other."""
    pairs = {"ab": (home / "a", home / "b"), "ba": (home / "b", home / "a")}
    for name, lms in pairs.items():
        derived.mix(lms, out / name, [0.3, 0.7], kenlm="none")
    derived.mix([home / "c", home / "a"], out / "ca", [0.5], kenlm="none")
    for name, lm, threshold in (("p", home / "a", 1e-3), ("q", home / "b", 1e-4)):
        derived.prune(lm, out / name, threshold, kenlm="none")
    again = out if (out / "ab" / NAME).exists() else without_archives(out, out / "bare")
    derived.prune(again / "ab", out / "abp", 1e-4, kenlm="none")
    derived.mix([again / "p", again / "q", again / "ab"], out / "all", [0.2, 0.3], kenlm="none")


@pytest.mark.parametrize("chunk", [1 << 19, 7])
def test_results_are_those_of_the_text(models, tmp_path, monkeypatch, chunk):
    plain = without_archives(models, tmp_path / "plain")
    make_all(plain, tmp_path / "text")
    monkeypatch.setattr("lmtools.ngram.backoff.CHUNK", chunk)
    monkeypatch.setattr("lmtools.ngram.archive.BLOCK", chunk)
    monkeypatch.setattr(arrays, "read_arpa", lambda *_: pytest.fail("the text was read"))
    make_all(models, tmp_path / "binary")
    for name in ("ab", "ba", "ca", "p", "q", "abp", "all"):
        for file in FILES:
            first, second = (tmp_path / way / name / file for way in ("text", "binary"))
            assert first.read_bytes() == second.read_bytes(), (name, file)


def rewrite(path, change):
    """Write the members of an archive again: `change` takes a dict of them, of their bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def set_value(column, value, row=5):
    """Change a value of a bigram."""

    def change(members):
        start = members["2.npy"].index(b"\n") + 1
        names = ["context", "suffix", "word", "prob", "backoff"]
        rows = np.frombuffer(bytearray(members["2.npy"][start:]), [(each, "<i4") for each in names])
        rows[column][row] = value
        members["2.npy"] = members["2.npy"][:start] + rows.tobytes()

    return change


def set_fact(**facts):
    """Change what model.json says."""

    def change(members):
        members[MODEL] = json.dumps({**json.loads(members[MODEL]), **facts}).encode()

    return change


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (set_value("context", 10**6), "its 2.npy names what is not there"),
        (set_value("word", -1), "its 2.npy names what is not there"),
        (set_value("suffix", 10**9), "its 2.npy names what is not there"),
        (set_value("prob", 2 * 10**9), None),  # more than 1, as where rounding errs
        (lambda members: members.pop("3.npy"), "it has no 3.npy"),
        (lambda members: members.update({"3.npy": members["2.npy"]}), "its 3.npy has another form"),
        (lambda members: members.update({"2.npy": members["2.npy"][:-9]}), "its 2.npy is cut off"),
        (lambda members: members.update({"2.npy": members["2.npy"] + b"x"}), "is too long"),
        (lambda members: members.update({VOCABULARY: b"a\nb\n"}), "has not the [0-9]+ words"),
        (lambda members: members.update({MODEL: b"[]"}), "expected a JSON object"),
        (set_fact(counts=[1, 2, 3]), "other numbers of n-grams than config.yaml"),
        (set_fact(version=2), "another version of lmtools wrote it"),
        (set_fact(arpa="0"), "of another lm.arpa than the one beside it"),
    ],
)
def test_what_is_not_so_is_refused(models, tmp_path, change, cause, capsys):
    shutil.copytree(models / "a", tmp_path / "a")
    rewrite(tmp_path / "a" / NAME, change)
    call = ["ngram", "prune", str(tmp_path / "a"), "--threshold", "1e-3", "--kenlm", "none"]
    status = cli.main([*call, "--out", str(tmp_path / "out")])
    message = capsys.readouterr().err
    if cause is None:
        assert status == 0
        return
    assert status == 1 and message.count("\n") == 1
    remedy = "copy both again" if "another lm" in cause else "remove it, so that lm.arpa is read"
    assert f"{tmp_path}/a/{NAME}: " in message and remedy in message
    with pytest.raises(UserError, match=cause):
        derived.prune(tmp_path / "a", tmp_path / "out", 1e-3, kenlm="none")
    assert not (tmp_path / "out").exists()


def test_damage_and_another_text_are_refused(models, tmp_path):
    whole = (models / "a" / NAME).read_bytes()
    shutil.copytree(models / "a", tmp_path / "a")
    path = tmp_path / "a" / NAME
    for content in (whole[: len(whole) // 2], whole[:20_000] + b"XXXX" + whole[20_004:], b"none"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"lm.npz: damaged archive .*; remove it") as error:
            derived.prune(tmp_path / "a", tmp_path / "out", 1e-3, kenlm="none")
        assert "\n" not in str(error.value)
    path.write_bytes(whole)
    text = tmp_path / "a/lm.arpa"
    text.write_bytes(text.read_bytes().replace(b"-1.", b"-2.", 1))
    for remove in (None, path):  # nor is it read without its sound neighbour
        if remove:
            remove.unlink()
        with pytest.raises(UserError, match=r"lm.arpa: is not the file that .* give this file by"):
            derived.mix([tmp_path / "a", models / "b"], tmp_path / "out", [0.5], kenlm="none")
        assert not (tmp_path / "out").exists()
    assert derived.prune(text, tmp_path / "out", 1e-3, kenlm="none")


@pytest.mark.parametrize("begin", [b"\x93NUMPY", b"{'descr'", b"[('", b"')", b"}"])
def test_a_bit_of_a_header(models, tmp_path, begin):
    """NumPy parses it as Python, and has an error of its own for each."""
    for bit in range(8):
        lm = tmp_path / f"{bit}"
        shutil.copytree(models / "a", lm)
        whole = (lm / NAME).read_bytes()
        at = whole.index(begin, whole.rindex(b"\x93NUMPY"))
        (lm / NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        with pytest.raises(UserError, match=r"lm.npz: .*; remove it"):
            derived.prune(lm, tmp_path / "out", 1e-3, kenlm="none")


PEAK = """
import sys, tracemalloc
import lmtools
from lmtools.ngram import archive, arpa, arpa_lines, arrays, backoff, derived, disk
for module in (archive, disk):
    module.BLOCK = 1 << 12
backoff.CHUNK = arpa.CHUNK = arrays.TOGETHER = 1 << 12
arpa_lines.CHUNK = 1 << 17
tracemalloc.start()
with lmtools.using(max_line=1 << 16):
    made, before = derived.prune(sys.argv[1], sys.argv[2], 1e-5, "none")
print(tracemalloc.get_traced_memory()[1], sum(before[1:]))
"""


@pytest.mark.parametrize(("way", "most"), [("binary", 14), ("text", 24)])
def test_pruning_holds_few_bytes_an_ngram(tmp_path, way, most):
    draw = np.random.default_rng(0)
    words = (3000 * draw.random((12_000, 14)) ** 3).astype(int)
    rows = (" ".join(f"w{i}" for i in row) for row in words)
    (tmp_path / "text").write_text("\n".join(rows) + "\n")
    build([tmp_path / "text"], 4, tmp_path / "lm", Normaliser(), kenlm="none")
    lm = tmp_path / "lm" if way == "binary" else tmp_path / "lm/lm.arpa"
    command = [sys.executable, "-c", PEAK, lm, tmp_path / "out"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak, ngrams = map(int, done.stdout.split())
    assert ngrams > 300_000
    assert peak < most * ngrams  # in memory they would take 28 bytes each


FULL = """
import errno, os, sys, zipfile

def fail(self, *content):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

zipfile._ZipWriteFile.write = zipfile._ZipWriteFile.close = fail
from lmtools.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_disk_is_said_in_one_line(text, tmp_path):
    verb = [sys.executable, "-c", FULL, "ngram", "--order", "2", "--kenlm", "none"]
    command = [*verb, "--text", text, "--out", tmp_path / "here/lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"{tmp_path}/here/lm: cannot write: No space left" in done.stderr
    assert not any(path.is_dir() for path in (tmp_path / "here").iterdir())
