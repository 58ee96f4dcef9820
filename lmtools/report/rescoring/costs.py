"""Tables of time: run time by sentence length, batched scoring, training, the recipe's stages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmtools.report.names import label, ordered, unnormalised
from lmtools.report.page.table import Table
from lmtools.report.rescoring.context import NONE, Report, decimal, provenance

TASKS = {"hidden": "hidden states", "rerank": "reranking", "represent": "sentence vectors"}
# what is counted a second
BATCHED = {"hypotheses": "Batched scoring", "sentences": "Sentence vectors in batches"}


def speed_tables(report: Report) -> Iterator[Table]:
    """The tables of `run_times`, if any were taken."""
    if report.experiment.speed:
        yield from run_times(report.experiment.speed, tuple(provenance(report)))


def run_times(speed: Mapping, sources: Sequence[str]) -> Iterator[Table]:
    """Median milliseconds a sentence (Figure 4 of the paper) and how many times faster T-TA is than
    biLM; last notes are `sources`.
    """
    medians = {
        (row["task"], row["words"], row["lm"]): 1000 * row["seconds_median"]
        for row in speed["rows"]
    }
    lms = ordered({lm for _, _, lm in medians})
    rows = []
    for task, words in sorted({key[:2] for key in medians}):
        times = {lm: medians.get((task, words, lm)) for lm in lms}
        ratio = times["masked"] / times["tta"] if times.get("tta") and times.get("masked") else None
        rows.append(
            (TASKS.get(task, task), str(words), *(decimal(times[lm]) for lm in lms), decimal(ratio))
        )
    header = ("task", "words", *(f"{label(lm)} ms" for lm in lms), "biLM / T-TA")
    machine = (
        f"Machine: {speed.get('machine', 'unknown')}, threads: {speed.get('threads', 'unknown')}."
    )
    paper = (
        "The paper's abstract: T-TA is over six times faster than the BERT-based model in"
        " reranking, twelve times in semantic similarity."
    )
    yield Table("Run time by sentence length", header, tuple(rows), (machine, paper, *sources))
    if batched := speed.get("batched"):
        yield throughput_table(batched, (machine, *sources))


def throughput_table(batched, notes: Sequence[str]) -> Table:
    """Batched scoring, or sentence vectors in batches, against the rate of the machine's own matrix
    products.
    """
    unit = (
        "sentences"
        if any("sentences_per_second" in row for row in batched.values())
        else "hypotheses"
    )
    columns = {"tokens": 0, f"{unit}_per_second": 1, "gflops": 1, "matrix_gflops": 1}
    rows = [
        (
            label(lm),
            *(decimal(batched[lm].get(name), digits) for name, digits in columns.items()),
            f"{100 * batched[lm]['share']:.0f}%",
        )
        for lm in ordered(batched)
    ]
    header = ("LM", "tokens", f"{unit}/s", "GFLOP/s", "machine's GFLOP/s", "share")
    note = (
        "GFLOP/s counts the model's own floating point operations; the machine's are measured on"
        " the same matrix products alone."
    )
    return Table(BATCHED[unit], header, tuple(rows), (notes[0], note, *notes[1:]))


def lattice_tables(report: Report) -> Iterator[Table]:
    """What rescoring lattices took, and how near the arcs' scores of a bidirectional LM are to
    those of whole sentences.
    """
    lattices = {
        key: one for key, one in report.experiment.lattices.items() if not unnormalised(key[0])
    }
    if not lattices:
        return
    rows = []
    for (system, name), one in lattices.items():
        seconds, speech = one["seconds"], one["speech"]
        sizes = [decimal(one[key], 0) for key in ("lattices", "arcs", "rescored_arcs")]
        rate = [
            decimal(one["arcs"] / speech, 1) if speech else NONE,
            decimal(seconds / speech, 3) if speech else NONE,
        ]
        off = one.get("approximation") or {}
        near = [decimal(off.get(key), 3) for key in ("word_mean", "sentence_mean")]
        rows.append(
            (
                label(system),
                name,
                *sizes,
                *rate,
                decimal(one["arcs"] / seconds, 0) if seconds else NONE,
                *near,
            )
        )
    header = ("system", "set", "lattices", "arcs", "rescored arcs", "arcs a second of speech",
    "real-time factor", "arcs/s",
              "difference a word", "a sentence")  # fmt: skip
    note = (
        "Time is that of rescoring, added up over processes, without reading, writing and loading."
        " The differences are mean absolute ones between the sum of the arcs' scores along a path"
        " and the LM's score of its words, in nats, over the best paths of each lattice."
    )
    yield Table("Rescoring lattices", header, tuple(rows), (note, *provenance(report)), left=2)


def training_tables(report: Report) -> Iterator[Table]:
    """How long each neural model trained and where it ended."""
    if not report.experiment.learning:
        return
    rows = []
    for lm, lines in report.experiment.learning.items():
        seen, losses = (
            [line for line in lines if "seconds" in line],
            [line["valid_loss"] for line in lines if "valid_loss" in line],
        )
        last = seen[-1] if seen else {}
        figures = (last.get("step"), last.get("tokens"), last.get("seconds"))
        rows.append(
            (
                label(lm),
                *(decimal(value, 0) for value in figures),
                decimal(min(losses, default=None), 3),
            )
        )
    note = (
        "Losses are nats a predicted token; they compare only between models of the same objective"
        " and subwords."
    )
    header = ("LM", "steps", "tokens", "seconds", "best valid loss")
    yield Table("Training", header, tuple(rows), (note, *provenance(report)))


def stage_tables(report: Report) -> Iterator[Table]:
    """How the time divides over the recipe's stages."""
    yield from divided(report.experiment.stages, provenance(report))


def divided(every: Sequence[Mapping], sources: Iterable[str]) -> Iterator[Table]:
    """The table of the manifests `every`, if any of their stages ended; its last notes are
    `sources`.
    """
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
        (*notes, *sources),
        left=2,
    )
