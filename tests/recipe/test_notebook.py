"""docs/tutorial.ipynb, run from beginning to end, prints and draws what is saved in it."""

import copy
import os
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
NOTEBOOK = Path(__file__).parents[2] / "docs/tutorial.ipynb"


def show_outputs(cell) -> list:
    """What a cell printed, and the kinds of what it drew."""
    outputs = cell.get("outputs", [])
    return [output.get("text") or sorted(output.get("data", output)) for output in outputs]


def test_the_notebook_prints_what_is_saved(monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    saved = nbformat.read(NOTEBOOK, as_version=4)
    run = copy.deepcopy(saved)
    nbclient.NotebookClient(
        run,
        timeout=600,
        coalesce_streams=True,
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    ).execute()
    for number, (cell, expected) in enumerate(zip(run.cells, saved.cells, strict=True)):
        assert show_outputs(cell) == show_outputs(expected), number
    drawn = [cell for cell in saved.cells if ["image/png", "text/plain"] in show_outputs(cell)]
    assert len(drawn) == 2 and NOTEBOOK.stat().st_size < 100_000


def test_the_first_cell_says_what_the_notebook_prints():
    first, *rest = nbformat.read(NOTEBOOK, as_version=4).cells
    printed = "".join(str(show_outputs(cell)) for cell in rest)
    assert "from 11.05% to 10.47%" in first.source and "11.05% -> 10.47%" in printed
