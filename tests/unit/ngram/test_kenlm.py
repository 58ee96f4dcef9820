"""Finding and running KenLM's programs, with scripts in their place; tests/interop talks to the
real ones.
"""

import pytest

from lmtools.errors import UserError
from lmtools.ngram import build, kenlm
from lmtools.ngram.kenlm import KenlmPrograms, LmplzReport
from lmtools.text import Normaliser

SAID = """=== 3/5 Calculating and sorting initial probabilities ===
Substituting fallback discounts for order 0: D1=0.5 D2=1 D3+=1.5
Statistics:
1 6 D1=0.5 D2=1 D3+=1.5
2 9 D1=0.74 D2=1.13 D3+=1.5e-01
"""


def install(directory, **scripts):
    """Executable shell scripts in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, body in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{body}\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No place has the programs: not the environment, the working directory, PATH."""
    monkeypatch.delenv(kenlm.PLACE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_find(tmp_path, monkeypatch, nowhere):
    assert KenlmPrograms.find() is None
    assert KenlmPrograms.find("none") is None
    both = install(tmp_path / "kenlm/bin", lmplz="", build_binary="")
    expected = KenlmPrograms(both / "lmplz", both / "build_binary")
    assert KenlmPrograms.find(str(both)) == KenlmPrograms.find(str(tmp_path / "kenlm")) == expected
    monkeypatch.setenv(kenlm.PLACE, str(tmp_path / "kenlm"))
    assert KenlmPrograms.find() == expected
    monkeypatch.delenv(kenlm.PLACE)
    install(tmp_path / kenlm.INSTALLED / "bin", lmplz="", build_binary="")
    found = KenlmPrograms.find()
    assert found.lmplz == tmp_path / kenlm.INSTALLED / "bin/lmplz"
    (found.lmplz).chmod(0o644)
    assert KenlmPrograms.find() is None
    monkeypatch.setenv("PATH", str(both))
    assert KenlmPrograms.find() == expected
    (both / "lmplz").chmod(0o644)
    assert KenlmPrograms.find() is None
    with pytest.raises(UserError, match="has no lmplz and build_binary"):
        KenlmPrograms.find(str(both))


def test_a_report_of_cut_offs():
    said = "1 8 D1=0.5 D2=1 D3+=1.5\n2 4/12 D1=0.692308 D2=0.961538 D3+=3\n"
    assert LmplzReport.parse(said).counts == [8, 4]


def test_report():
    assert LmplzReport.parse(SAID) == LmplzReport([6, 9], [[0.5, 1, 1.5], [0.74, 1.13, 0.15]], [1])


@pytest.mark.parametrize(
    ("lmplz", "message"),
    [
        (
            "echo first >&2; echo 'no space' >&2; exit 3",
            r"^lmplz failed \(status 3\): no space; give another --memory",
        ),
        ("kill -9 $$", "perhaps for want of memory"),
        ("cat > /dev/null; exit 1", "no message"),
    ],
)
def test_a_failing_program_is_a_users_error(tmp_path, text, lmplz, message):
    kenlm = install(tmp_path / "bin", lmplz=lmplz, build_binary="")
    with pytest.raises(UserError, match=message):
        build([text], 2, tmp_path / "out/lm", Normaliser(), kenlm=str(kenlm))
    assert not list((tmp_path / "out").iterdir())


def test_bad_text_ends_lmplz(tmp_path):
    kenlm = install(
        tmp_path / "bin",
        lmplz=f"cat > /dev/null; sleep 1; echo > {tmp_path}/went-on",
        build_binary="",
    )
    (tmp_path / "bad").write_bytes(b"fine\n\xff\n")
    with pytest.raises(UserError, match="bad:2: not UTF-8"):
        build([tmp_path / "bad"], 2, tmp_path / "out/lm", Normaliser(), kenlm=str(kenlm))
    assert not (tmp_path / "went-on").exists()
