"""lmtools embed from the command line."""

from shlex import split

import numpy as np
import pytest
from scoring import CPU
from spelled import random_elmo

from lmtools.cli import main
from lmtools.vectors.words import word_vectors

LINES = ["the king", "", "A queen went", "the king"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("embed")
    random_elmo(home)
    (home / "text").write_text("".join(f"{line}\n" for line in LINES))
    (home / "kaldi").write_text(
        "".join(f"utt-{number} {line}\n" for number, line in enumerate(LINES))
    )
    return home


def embed(home, out, *more, text="text"):
    return main(
        [
            *split(
                f"embed --lm {home}/lm --text {home / text} --out {out} --device cpu --cache none"
            ),
            *more,
        ]
    )


@pytest.mark.parametrize("form", [("text",), ("kaldi", "--kaldi")])
def test_the_file_holds_the_librarys_vectors(home, tmp_path, form, capsys):
    text, *more = form
    expected = list(word_vectors(home / "lm", LINES, None, CPU))
    assert embed(home, tmp_path / "v.npz", *more, text=text) == 0
    assert (
        f"{tmp_path / 'v.npz'}: 7 words of 4 lines, 16 values in each of the layers 0, 1, 2\n"
        in capsys.readouterr().err
    )
    npz = np.load(tmp_path / "v.npz")
    assert npz["words"].tolist() == ["the", "king", "a", "queen", "went", "the", "king"]
    assert npz["offsets"].tolist() == [0, 2, 2, 5, 7]
    for number, line in enumerate(expected):
        begin, end = npz["offsets"][number : number + 2]
        np.testing.assert_array_equal(npz["vectors"][begin:end], line.vectors)


@pytest.mark.parametrize("layers,expected", [("all", [0, 1, 2]), ("2", [2]), ("0,2", [0, 2])])
def test_layers(home, tmp_path, layers, expected):
    assert embed(home, tmp_path / "v.npz", "--layer", layers, "--rows", "5") == 0
    npz = np.load(tmp_path / "v.npz")
    assert npz["layers"].tolist() == expected and npz["vectors"].shape == (7, len(expected), 16)


def test_what_cannot_be_is_one_line(home, tmp_path, capsys):
    (home / "empty").write_text("")
    cases = [
        (["--out", str(tmp_path / "v.h5")], "v.h5: vectors go to a name that ends in .npz; give"),
        (["--layer", "3"], "has the layers 0 (embedding) to 2, no 3; choose of these"),
        (["--text", str(home / "empty")], "empty:1: no lines; give text"),
    ]
    for more, message in cases:
        assert embed(home, tmp_path / "v.npz", *more) == 1
        error = capsys.readouterr().err
        assert (
            message in error
            and len(error.splitlines()) == 1
            and error.startswith("lmtools embed: ")
        )
    assert not list(tmp_path.iterdir())
