"""Tables of run time, as in Figure 4 of the T-TA paper: by sentence length, and of batched scoring;
of the recipe's stages.
"""

from collections.abc import Iterator

from lmtools.report.experiment import Experiment
from lmtools.report.page.table import NONE, Column, Table, figures, ratio, table_of
from lmtools.report.rows import MILLISECONDS
from lmtools.report.tables.query import Query

TASKS = {"hidden": "hidden states", "rerank": "reranking", "represent": "sentence vectors"}
# what is counted a second
BATCHED = {"hypotheses": "Batched scoring", "sentences": "Sentence vectors in batches"}
PAPER = (
    "The paper's abstract: T-TA is over six times faster than the BERT-based model in"
    " reranking, twelve times in semantic similarity."
)
GFLOPS = (
    "GFLOP/s counts the model's own floating point operations; the machine's are measured on"
    " the same matrix products alone."
)


def speed_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the median milliseconds a sentence (Figure 4 of the T-TA paper) and how many times
    faster T-TA is than biLM; then batched scoring, or sentence vectors in batches, against the rate
    of the machine's own matrix products.
    """
    speed, names, rows = experiment.speed, experiment.names.lms, experiment.rows
    if not speed:
        return
    keys = sorted({(row["task"], row["words"]) for row in speed["rows"]})
    times = {
        lm: [rows.value("speed", lm, MILLISECONDS, *key) for key in keys]
        for lm in names.ordered({row["lm"] for row in speed["rows"]})
    }
    absent = [None] * len(keys)
    ratios = map(ratio, times.get("masked", absent), times.get("tta", absent))
    columns = [
        Column("task", [TASKS.get(task, task) for task, _ in keys]),
        Column("words", [str(words) for _, words in keys]),
        *(figures(f"{names.label(lm)} ms", values) for lm, values in times.items()),
        figures("biLM / T-TA", list(ratios)),
    ]
    facts = (speed.get(key, "unknown") for key in ("machine", "threads"))
    machine = "Machine: {}, threads: {}.".format(*facts)
    yield table_of("Run time by sentence length", columns, (machine, PAPER), full=True)
    if batched := speed.get("batched"):
        sentences = any("sentences_per_second" in row for row in batched.values())
        unit = "sentences" if sentences else "hypotheses"
        query = Query(rows, "batched", names.ordered(batched))
        specs = {
            "tokens": ("tokens", 0),
            f"{unit}/s": (f"{unit}_per_second", 1),
            "GFLOP/s": ("gflops", 1),
            "machine's GFLOP/s": ("matrix_gflops", 1),
        }
        columns = [
            Column("LM", list(map(names.label, query.names))),
            *query.columns(specs),
            query.printed("share", lambda row: f"{100 * row.value:.0f}%", "share"),
        ]
        yield table_of(BATCHED[unit], columns, (machine, GFLOPS), full=True)


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
