"""Language models of installed packages, found by name; no code of the package runs."""

import pytest

from lmtools.base.errors import UserError
from lmtools.base.installed import find_model
from lmtools.base.specs import LMSpec, parse_mixture
from lmtools.score import load


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a package with one model in an environment of its own."""

    def make(package: str, name: str = "en-x") -> str:
        site = tmp_path / f"site-{package}"
        (site / package / "en_x").mkdir(parents=True)
        (site / package / "__init__.py").write_text("raise SystemExit('imported')\n")
        metadata = site / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        points = f"[lmtools.models]\n{name} = {package}.en_x\n"
        (metadata / "entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(str(site))
        return str(site / package / "en_x")

    monkeypatch.chdir(tmp_path)
    return make


def test_a_name_is_a_folder_of_a_package(install):
    folder = install("first")
    assert find_model("en-x") == folder
    assert LMSpec.parse("en-x,oov_penalty=7") == LMSpec(folder, oov_penalty=7.0)
    for other in ("en-y", "a/en-x", "hf:en-x", "en-x "):
        assert find_model(other) == other


def test_parts_of_a_mixture_have_names(install):
    folder = install("first")
    assert parse_mixture("mix:en-x=0.6,lm=0.4") == ([folder, "lm"], [0.6, 0.4])


def test_what_lies_here_comes_first(install, tmp_path):
    install("first")
    (tmp_path / "en-x").mkdir()
    assert find_model("en-x") == "en-x"


def test_a_name_of_two_packages_is_refused(install):
    folders = [install("first"), install("second")]
    with pytest.raises(UserError) as error:
        find_model("en-x")
    assert all(folder in str(error.value) for folder in folders)


def test_a_model_that_is_not_installed(install):
    with pytest.raises(UserError, match=r"en-y: no such .*none, pip install lmtools-models-en"):
        load("en-y")
    install("first")
    with pytest.raises(UserError, match=r"en-y: no such .*installed: en-x"):
        load("en-y")
