"""The table of the recipe's stages."""

from collections.abc import Iterator

from lmtools.report.experiment import Experiment
from lmtools.report.page.table import NONE, Column, Table, figures, table_of


def stage_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the recipe's time by stage, if any stage ended."""
    every = experiment.stages
    stages = [stage for stage in every if stage.get("seconds") is not None]
    if not stages:
        return
    parts = [stage["seconds"] for stage in stages]
    parts.append(total := sum(parts))
    columns = [
        Column("stage", [*(str(stage.get("stage", NONE)) for stage in stages), ""]),
        Column("title", [*(stage.get("title", NONE) for stage in stages), "all"]),
        figures("seconds", parts, 1),
        Column("share", [f"{100 * value / total:.1f}%" if total else NONE for value in parts]),
    ]
    running = [f"{st.get('stage')} ({st.get('title')})" for st in every if st not in stages]
    note = f"Not finished when this was written: stage {', '.join(running)}."
    yield table_of("How the time divides", columns, [note] * bool(running), left=2, full=True)
