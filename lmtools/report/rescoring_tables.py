"""The tables beside the main ones: weights, list depths, perplexities, lengths, lattices, times, in
the shape of Tables 5 and 7 of the T-TA paper (Shin et al. 2020).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lmtools.formats.scores import hash_lists
from lmtools.report.artifacts import list_unchecked
from lmtools.report.experiment import LM, Experiment
from lmtools.report.main_tables import system_column
from lmtools.report.measure import LENGTHS, length_classes
from lmtools.report.style import ORACLE, SUM, shorten
from lmtools.report.table import NONE, Column, Query, Table, figures, numbers, ratio, table_of
from lmtools.rescoring.features import summed

MEANINGS = {  # of what is computed from the text, and of what the names of means end in
    "words": "`words` is its number of words",
    "characters": "`characters` its number of characters",
    "log-words": "`log-words` log(1 + its number of words)",
    "/token": "`LM/token` the LM's mean over tokens",
    "/word": "`LM/word` the LM's score divided by the number of words",
}
WEIGHT = "{:.4g}"
PPL_COLUMNS = {  # what `lmtools ppl` wrote, by the table's header
    "subword": ("subword_ppl", 2),
    "word": ("word_ppl", 2),
    "bits/char": ("bits_per_char", 2),
    "sentence mean": ("sentence_ppl_mean", 2),
    "sentence median": ("sentence_ppl_median", 2),
}
PSEUDO_KIND = "pseudo-perplexity"
PSEUDO = (
    "A pseudo-perplexity sees both sides of each token: it is lower than a perplexity by nature"
    " and compares only with its like."
)


def weight_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the tuned weight of every feature in every system."""
    lists = experiment.lists
    weights = {
        name: system.weights.features
        for name, system in lists.systems.items()
        if system.weights and system.makeup.normalised
    }
    if not weights:
        return
    features = dict.fromkeys(feature for values in weights.values() for feature in values)
    scored = [name for name in features if summed(name) in lists.hashes]
    places = lists.names.lms.ordered(set(map(summed, scored)))
    scored.sort(key=lambda name: (places.index(summed(name)), name))
    order = [*(name for name in features if name not in scored), *scored]
    query = Query(experiment.rows, "weight", list(weights))
    columns = [numbers(name, query.values(name), WEIGHT) for name in order]
    kinds = {name.removeprefix(summed(name)) or name for name in order}
    meaning = "; ".join(text for kind, text in MEANINGS.items() if kind in kinds)
    note = (
        "A hypothesis scores the sum of weight times value over the features (natural"
        f" logs){meaning and '; '}{meaning}."
    )
    columns = [system_column(experiment, query), *columns]
    yield table_of("Weights", columns, (note, *list_deviations(experiment)), full=True)


def lambda_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield lambda of every interpolation with the first pass."""
    lists = experiment.lists
    systems = [system for system in lists.systems.values() if system.makeup.interpolated]
    if not systems:
        return
    parts = [system.makeup.parts[0] for system in systems]
    searches = [system.weights.search for system in systems]
    flat = [next(iter(search["curves"].values()))["flat"] for search in searches]
    columns = [
        Column("LM", [lists.names.lms.label(part.lm) for part in parts]),
        Column(
            "its score", [p.score if p.score == SUM else f"mean over {p.score}s" for p in parts]
        ),
        numbers("lambda", [search["lambda"] for search in searches], WEIGHT),
        Column("as good", ["{:.3g}-{:.3g}".format(*ends) for ends in flat]),
        figures(f"dev {lists.metric_label}", [system.weights.dev.score for system in systems]),
    ]
    note = (
        "(1 - lambda) first pass + lambda LM, nothing else is tuned; the first pass's score is"
        " that which Weights shows, divided by 1 - lambda. In the T-TA paper (Shin et al. 2020)"
        " lambda is 0.3 or 0.4 for speech, 0.4 or 0.5 for translation; it compares where the"
        " first pass's score is a log-probability of the same kind as the LM's."
    )
    yield table_of("Interpolation with the first pass", columns, (note,), left=2, full=True)


def list_deviations(experiment: Experiment) -> Iterator[str]:
    """Yield warnings of rescored texts that are not what the weights choose."""
    lists = experiment.lists
    for measured in lists.sets:
        content, place = hash_lists(measured.sample.lists), measured.sample.name
        for name, system in lists.systems.items():
            score = experiment.rows.value("system", name, lists.metric, place)
            expected = measured.by_depth[name][-1] if name in measured.by_depth else None
            if (weights := system.weights) and weights.dev.sha256 == content:
                expected = weights.folds.score if weights.folds else weights.dev.score
            if None not in (expected, score) and abs(score - expected) > 0.005:
                yield (
                    f"Warning: {lists.names.label(name)} on {place}: the rescored text has"
                    f" {score:.2f}, the weights choose {expected:.2f}; tune and rescore again."
                )


def list_misfits(experiment: Experiment) -> list[str]:
    """Return a line on each text that the weights do not choose, and on unchecked scores."""
    if experiment.lists is None:
        return []
    return [*list_deviations(experiment), *list_unchecked(experiment.home)]


def oracle_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the oracle by list depth, all sets (Table 5 of the paper)."""
    lists, rows = experiment.lists, experiment.rows
    sets = [measured.sample.name for measured in lists.sets]
    columns = [Column("set", sets)]
    for depth in sorted({depth for measured in lists.sets for depth in measured.depths}):
        values = [rows.value("depth", ORACLE, lists.metric, name, at=depth) for name in sets]
        columns.append(figures(str(depth), values))
    yield table_of(f"Oracle {lists.metric_label} by list depth", columns, full=True)


def depth_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield every system by list depth, with the same weights."""
    lists = experiment.lists
    for measured in lists.judged:
        if measured.by_depth and len(measured.oracle) > 1:
            name, depths = measured.sample.name, measured.depths
            query = Query(experiment.rows, "depth", [ORACLE, *measured.by_depth])
            columns = [query.column(str(at), lists.metric, name, at=at) for at in depths]
            title = f"{lists.metric_label} by list depth: {name}"
            yield table_of(title, [system_column(experiment, query), *columns], full=True)


def ppl_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield perplexities beside the score of rescoring with the model (Table 7 of the paper)."""
    lists, ppl = experiment.lists, ppl_of_lists(experiment)
    if not ppl:
        return
    sets = [measured.sample.name for measured in lists.sets]
    order = [*sets, *sorted({name for _, name in ppl}.difference(sets))]
    keys = sorted(ppl, key=lambda key: order.index(key[1]))
    lms, places = zip(*keys, strict=True)
    query = Query(experiment.rows, "lm", lms, places)
    labels = {key: label_lm(experiment, key[0], tree) for key, tree in ppl.items()}
    rules: dict[str, dict[str, None]] = {}
    for key, tree in ppl.items():
        rules.setdefault(tree.get("rules", ""), {})[labels[key]] = None
    notes = [f"{', '.join(names)}: {rule}." for rule, names in rules.items() if rule]
    scores = Query(experiment.rows, "system", lms, places).column
    columns = [
        Column("set", places),
        Column("LM", [labels[key] for key in keys]),
        Column("kind", [ppl[key].get("kind", NONE) for key in keys]),
        *query.columns(PPL_COLUMNS),
        Column("OOV", [str(ppl[key].get("oov", NONE)) for key in keys]),
        scores(lists.metric_label, lists.metric),
    ]
    title = f"Perplexity beside {lists.metric_label}"
    pseudo = any(tree.get("kind") == PSEUDO_KIND for tree in ppl.values())
    yield table_of(title, columns, [*notes, *[PSEUDO] * pseudo], left=3, full=True)


def ppl_of_lists(experiment: Experiment) -> dict[tuple[str, str], Mapping]:
    """Return the perplexities that stand beside scores: all, or, where language models are reported
    by themselves, those of the lists' references, in the order of the lists' names.
    """
    if experiment.kind != LM:
        return dict(experiment.ppl)
    names = {sample.name for sample in experiment.lists.samples}
    order = experiment.lists.names.lms.ordered({lm for lm, _ in experiment.ppl})
    keys = sorted(experiment.ppl, key=lambda key: order.index(key[0]))
    return {key: experiment.ppl[key] for key in keys if key[1] in names}


def label_lm(experiment: Experiment, name: str, tree: Mapping) -> str:
    """Return the printed name of a language model, or of a mixture with its weights."""
    labels = experiment.lists.names.lms.label
    parts = [
        f"{part['weight']:.2f} {shorten(labels(Path(part['lm']).name))}"
        for part in tree.get("mixture", ())
    ]
    return " + ".join(parts) or labels(name)


def length_tables(experiment: Experiment) -> Iterator[Table]:
    lists, rows = experiment.lists, experiment.rows
    for measured in lists.judged:
        place, lengths = measured.sample.name, measured.lengths
        classes = zip(LENGTHS, length_classes(lengths), strict=True)
        classes = {bounds: members for bounds, members in classes if members.any()}
        columns = [
            Column("words", list(map(span, classes))),
            figures("utterances", [members.sum() for members in classes.values()], 0),
            figures("ref. words", [lengths[members].sum() for members in classes.values()], 0),
        ]
        for name in measured.results:
            values = [rows.value("length", name, lists.metric, place, at=low) for low, _ in classes]
            columns.append(figures(lists.names.label(name), values))
        yield table_of(f"{lists.metric_label} by utterance length: {place}", columns, full=True)


def span(bounds: tuple[int, int | None]) -> str:
    """Spell a range, as in `3-5`, `0`, `21+`."""
    low, high = bounds
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def training_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each neural model."""
    learning = experiment.learning
    if not learning:
        return
    last = [
        next((line for line in reversed(lines) if "seconds" in line), {})
        for lines in learning.values()
    ]
    losses = [
        [ln["valid_loss"] for ln in lines if "valid_loss" in ln] for lines in learning.values()
    ]
    headers = {"steps": "step", "tokens": "tokens", "seconds": "seconds"}
    columns = [
        Column("LM", list(map(experiment.names.lms.label, learning))),
        *(figures(name, [line.get(key) for line in last], 0) for name, key in headers.items()),
        figures("best valid loss", [min(values, default=None) for values in losses], 3),
    ]
    note = (
        "Losses are nats a predicted token; they compare only between models of the same objective"
        " and subwords."
    )
    yield table_of("Training", columns, (note,), full=True)


def lattice_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the costs of rescoring lattices, and how far two-way scores on arcs are off."""
    lists = experiment.lists
    makeups = {name: lists.lattice_makeup(name) for name, _ in lists.lattices}
    keys = [key for key in lists.lattices if makeups[key[0]].normalised]
    if not keys:
        return
    systems = {name: m._replace(lattices=False) for name, m in makeups.items() if m.parts}
    names, (labels, places) = replace(lists.names, systems=systems), zip(*keys, strict=True)
    query = Query(experiment.rows, "lattice", labels, places)
    arcs, speech, seconds = map(query.values, ("arcs", "speech", "seconds"))
    rates = {"arcs a second of speech": (arcs, speech, 1), "real-time factor": (seconds, speech, 3)}
    rates["arcs/s"] = arcs, seconds, 0
    sizes = {"lattices": "lattices", "arcs": "arcs", "rescored arcs": "rescored_arcs"}
    off = {"difference a word": ("word_mean", 3), "a sentence": ("sentence_mean", 3)}
    columns = [
        Column("system", list(map(names.label, labels))),
        Column("set", places),
        *query.columns({header: (quantity, 0) for header, quantity in sizes.items()}),
        *(
            figures(header, list(map(ratio, values, base)), digits)
            for header, (values, base, digits) in rates.items()
        ),
        *query.columns(off),
    ]
    note = (
        "Time is that of rescoring, added up over processes, without reading, writing and loading."
        " The differences are mean absolute ones between the sum of the arcs' scores along a path"
        " and the LM's score of its words, in nats, over the best paths of each lattice."
    )
    yield table_of("Rescoring lattices", columns, (note,), left=2, full=True)


def stage_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the recipe's time by stage, if any stage ended."""
    stages = [stage for stage in experiment.stages if stage.get("seconds") is not None]
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
    yield table_of("How the time divides", columns, left=2, full=True)
