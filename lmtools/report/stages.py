"""The table of how long the recipe's stages took."""

from collections.abc import Iterator

from lmtools.report.experiment import Experiment
from lmtools.report.page.columns import NONE, decimal
from lmtools.report.page.table import Table


def stage_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the recipe's time by stage, if any stage ended."""
    every = experiment.stages
    stages = [stage for stage in every if stage.get("seconds") is not None]
    if not stages:
        return
    total = sum(stage["seconds"] for stage in stages)
    rows = [
        (
            str(stage.get("stage", NONE)),
            stage.get("title", NONE),
            decimal(stage["seconds"], 1),
            f"{100 * stage['seconds'] / (total or 1):.1f}%",
        )
        for stage in stages
    ]
    open_stages = [
        f"{stage.get('stage')} ({stage.get('title')})" for stage in every if stage not in stages
    ]
    notes = (
        [f"Not finished when this was written: stage {', '.join(open_stages)}."]
        if open_stages
        else []
    )
    header = ("stage", "title", "seconds", "share")
    yield Table(
        "How the time divides",
        header,
        (*rows, ("", "all", decimal(total, 1), "100.0%")),
        tuple(notes),
        left=2,
    )
