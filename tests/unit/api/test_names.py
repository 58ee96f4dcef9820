"""The public names: found without importing anything else, and the same for type checkers."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import lmtools

ROOT = Path(__file__).parents[3]
ALONE = """
import sys
before = set(sys.modules)
import lmtools
assert not {"numpy", "torch", "scipy", "yaml", "sentencepiece", "kenlm"} & sys.modules.keys()
print(*[name for name in set(sys.modules) - before if name.split(".")[0] == "lmtools"])
"""
TABLES = """
import sys, lmtools
lmtools.read, lmtools.write, lmtools.tune, lmtools.rescore, lmtools.wer, lmtools.Weights
lmtools.lattice.best, lmtools.NBest, lmtools.UserError
assert "torch" not in sys.modules
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_loads_nothing_else():
    assert sorted(run(ALONE).split()) == ["lmtools", "lmtools.version"]


def test_tables_need_no_torch():
    run(TABLES)


def test_every_name_is_there_and_shown():
    assert {*lmtools.HOME_OF, "lattice"} == {*lmtools.__all__} <= {*dir(lmtools)}
    for name in lmtools.__all__:
        assert getattr(lmtools, name).__doc__
    for name in lmtools.lattice.__all__:
        assert getattr(lmtools.lattice, name).__doc__


def test_a_room_never_hides_a_name():
    import lmtools.rescoring

    assert callable(lmtools.rescore)
    rooms = {path.stem for path in (ROOT / "lmtools").iterdir()}
    assert rooms & {*lmtools.__all__} == {"lattice"}


def test_type_checkers_see_the_same():
    tree = ast.parse((ROOT / "lmtools/__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {one.name: line.module for line in block.body for one in line.names}
    assert seen == lmtools.HOME_OF | {"lattice": "lmtools"}
    assert (ROOT / "lmtools/py.typed").exists()
    assert '"py.typed"' in (ROOT / "setup.py").read_text()


def test_version_is_the_newest_of_the_changes():
    titles = re.findall(r"^## (\S+)", (ROOT / "CHANGES.md").read_text(), re.MULTILINE)
    assert next(title for title in titles if title != "Unreleased") == lmtools.__version__


def test_the_typed_program_uses_every_name():
    """mypy checks what it uses (make lint)."""
    tree = ast.parse((ROOT / "tests/typed_program.py").read_text())
    pairs = [(ast.unparse(n.value), n.attr) for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    used = {name for home, name in pairs if home == "lmtools"}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    used |= {one.name for node in imports if node.module == "lmtools" for one in node.names}
    assert used == {*lmtools.__all__}
    inside = {name for home, name in pairs if home == "lattice"}
    kinds = {name for name in lmtools.lattice.__all__ if name[0].isupper()}  # what they return
    assert inside | kinds == {*lmtools.lattice.__all__}
