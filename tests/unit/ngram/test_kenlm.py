"""Finding and running KenLM's build_binary, with scripts in its place; tests/interop talks to the
real one.
"""

from types import SimpleNamespace

import kenlm
import numpy as np
import pytest
from scoring import load_scorer

from lmtools.base.errors import UserError
from lmtools.ngram import NgramModel, build, kenlm_files
from lmtools.ngram import model as module
from lmtools.ngram.kenlm_files import PROGRAM, find_program
from lmtools.score import ngram
from lmtools.text import Normaliser


def install(directory, **scripts):
    """Executable shell scripts in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, body in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{body}\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No place has the program: not the environment, the working directory, PATH."""
    monkeypatch.delenv(kenlm_files.PLACE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_find(tmp_path, monkeypatch, nowhere):
    assert find_program() is None and find_program("none") is None
    path = install(tmp_path / "kenlm/bin", build_binary="") / PROGRAM
    assert find_program(str(path.parent)) == find_program(str(tmp_path / "kenlm")) == path
    monkeypatch.setenv(kenlm_files.PLACE, str(tmp_path / "kenlm"))
    assert find_program() == path
    monkeypatch.delenv(kenlm_files.PLACE)
    installed = install(tmp_path / kenlm_files.INSTALLED / "bin", build_binary="") / PROGRAM
    assert find_program() == installed
    installed.chmod(0o644)
    assert find_program() is None
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_program() == path
    path.chmod(0o644)
    assert find_program() is None
    with pytest.raises(UserError, match="kenlm: has no build_binary; run utils/install_kenlm"):
        find_program(str(tmp_path / "kenlm"))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo first >&2; echo 'no space' >&2; exit 3", r"\(status 3\): no space; check memory"),
        ("kill -9 $$", "perhaps for want of memory"),
        ("exit 1", "no message; check memory and disk, or give --kenlm none"),
    ],
)
def test_a_failing_program_is_a_users_error(tmp_path, text, script, message):
    place = install(tmp_path / "bin", build_binary=script)
    with pytest.raises(UserError, match=f"^build_binary failed .*{message}"):
        build([text], 2, tmp_path / "out/lm", Normaliser(), kenlm=str(place))
    assert not list((tmp_path / "out").iterdir())


# what both packages have, read off kenlm 0.3.0 and ufal-kenlm 26.4.1
MODULE = {"ARPALoadComplain", "Config", "LoadMethod", "Model", "State"}
MODEL = {"BaseFullScore", "BaseScore", "BeginSentenceWrite", "NullContextWrite"}
MODEL |= {"full_scores", "order", "path", "perplexity", "score"}


class Shared:
    """A model that has nothing but what both packages' have."""

    def __init__(self, path, config):
        self.model = kenlm.Model(path, config)

    def __contains__(self, word):
        return word in self.model

    def __getattr__(self, name):
        if name not in MODEL:
            raise AttributeError(name)
        return getattr(self.model, name)


def score(directory) -> list[float]:
    """log p of whole sentences, and of one word by word."""
    scorer = load_scorer(str(directory), "cpu")
    grown = scorer.prefixes()
    (first,), nodes = grown.words(np.array([grown.start]), ["w0"])
    (second,), nodes = grown.words(nodes, ["zzz"])
    by_word = float(first + second + grown.end(nodes)[0])
    whole = scorer.model.score(["w0 zzz", "w1\vw2"])[0].tolist()
    assert by_word == pytest.approx(whole[0])
    return [*whole, by_word]


def test_what_both_packages_have_is_enough(directory, monkeypatch):
    expected = score(directory)
    both = SimpleNamespace(**{name: getattr(kenlm, name) for name in MODULE})
    both.Model = Shared
    for user in (module, kenlm_files, ngram):
        monkeypatch.setattr(user, "kenlm", both)
    assert score(directory) == expected


def test_without_either_the_remedy_is_told(directory, monkeypatch):
    monkeypatch.setattr(kenlm_files, "kenlm", None)
    with pytest.raises(UserError, match=r"need KenLM's Python module; .*pip install -e .*\[ngram"):
        NgramModel.load(directory)
