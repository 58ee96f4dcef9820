"""The tables of RESULTS.md, in the shape of Tables 5 and 7 of the T-TA paper (Shin et al.
2020).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lmtools.report.artifacts import unchecked
from lmtools.report.names import ORACLE, SUM, shorten
from lmtools.report.page.columns import NONE, decimal
from lmtools.report.page.table import Table
from lmtools.report.papers.run_times import speed_tables
from lmtools.report.rescoring.criteria.tables import criteria_tables
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.rescoring.lattices import lattice_tables
from lmtools.report.rescoring.measure import LENGTHS, length_classes
from lmtools.report.rescoring.scores import main_tables
from lmtools.report.stages import stage_tables
from lmtools.rescoring import set_hash
from lmtools.rescoring.features import summed

MEANINGS = {  # of what is computed from the text, and of what the names of means end in
    "words": "`words` is its number of words",
    "characters": "`characters` its number of characters",
    "log-words": "`log-words` log(1 + its number of words)",
    "loop": "`loop` minus the words that it repeats in a loop",
    "/token": "`LM/token` the LM's mean over tokens",
    "/word": "`LM/word` the LM's score divided by the number of words",
}


PPL_COLUMNS = {  # what `lmtools ppl` wrote, by the table's header
    "subword": "subword_ppl",
    "word": "word_ppl",
    "bits/char": "bits_per_char",
    "sentence mean": "sentence_ppl_mean",
    "sentence median": "sentence_ppl_median",
}


def weight_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Yield the tuned weight of every feature in every system."""
    systems = {
        name: system for name, system in experiment.systems.items() if system.makeup.normalised
    }
    weights = {name: system.weights.features for name, system in systems.items() if system.weights}
    if not weights:
        return
    features = dict.fromkeys(feature for one in weights.values() for feature in one)
    lms = set(experiment.models)
    places = experiment.names.lms.ordered({summed(name) for name in features} & lms)
    mine = sorted(
        (name for name in features if summed(name) in lms),
        key=lambda name: (places.index(summed(name)), name),
    )
    order = [name for name in features if summed(name) not in lms] + mine
    rows = [
        (experiment.names.label(name), *(weight(one.get(feature)) for feature in order))
        for name, one in weights.items()
    ]
    kinds = {name.removeprefix(summed(name)) or name for name in order}
    said = "; ".join(meaning for kind, meaning in MEANINGS.items() if kind in kinds)
    note = (
        "A hypothesis scores the sum of weight times value over the features (natural"
        f" logs){said and '; '}{said}."
    )
    yield Table("Weights", ("system", *order), tuple(rows), (note, *deviations(experiment)))


def lambda_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Lambda of every interpolation with the first pass."""
    rows = []
    for system in experiment.systems.values():
        if system.makeup.interpolated:
            (part,), search, dev = system.makeup.parts, system.weights.search, system.weights.dev
            ranges = ["{:.3g}-{:.3g}".format(*one["flat"]) for one in search["curves"].values()]
            found = (weight(search["lambda"]), *ranges, decimal(dev.score))
            score = "sum" if part.score == SUM else f"mean over {part.score}s"
            rows.append((experiment.names.lms.label(part.lm), score, *found))
    if rows:
        header = ("LM", "its score", "lambda", "as good", f"dev {experiment.metric_label}")
        notes = (
            "(1 - lambda) first pass + lambda LM, nothing else is tuned; the first pass's score is"
            " that which Weights shows, divided by 1 - lambda. In the T-TA paper (Shin et al. 2020)"
            " lambda is 0.3 or 0.4 for speech, 0.4 or 0.5 for translation; it compares where the"
            " first pass's score is a log-probability of the same kind as the LM's.",
        )
        yield Table("Interpolation with the first pass", header, tuple(rows), notes, left=2)


def weight(value: float | None) -> str:
    """Return a weight with four significant digits."""
    return NONE if value is None else f"{value:.4g}"


def deviations(experiment: RescoringExperiment) -> Iterator[str]:
    """Yield the places where rescored texts are not what the weights choose: on the tuning set by
    what tuning noted, elsewhere by choosing again.
    """
    for measured in experiment.sets:
        content = set_hash(measured.sample.nbests)
        results = {**measured.results, **measured.unnormalised}
        for name, system in experiment.systems.items():
            expected = measured.by_depth[name][-1] if name in measured.by_depth else None
            if system.weights and system.weights.dev.sha256 == content:
                folds = system.weights.folds
                expected = folds.score if folds else system.weights.dev.score
            if (
                expected is not None
                and name in results
                and abs(results[name].score - expected) > 0.005
            ):
                found = (
                    f"the rescored text has {results[name].score:.2f}, the weights choose"
                    f" {expected:.2f}"
                )
                yield (
                    f"Warning: {experiment.names.label(name)} on {measured.sample.name}: {found};"
                    " tune and rescore again."
                )


def misfits(experiment: RescoringExperiment) -> list[str]:
    """Return a line on each text that the weights do not choose, and on unchecked scores."""
    return [*deviations(experiment), *unchecked(experiment.home)]


def oracle_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Yield the oracle by list depth, all sets (Table 5 of the paper)."""
    depths = sorted({depth for measured in experiment.sets for depth in measured.depths})
    rows = []
    for measured in experiment.sets:
        reached = [
            decimal(float(measured.oracle[depth - 1])) if depth <= len(measured.oracle) else NONE
            for depth in depths
        ]
        rows.append((measured.sample.name, *reached))
    title = f"Oracle {experiment.metric_label} by list depth"
    yield Table(title, ("set", *map(str, depths)), tuple(rows))


def depth_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Every system by list depth, with the same weights."""
    for measured in experiment.judged:
        curves = {
            ORACLE: [measured.oracle[depth - 1] for depth in measured.depths],
            **measured.by_depth,
        }
        if measured.by_depth and len(measured.oracle) > 1:
            rows = [
                (experiment.names.label(name), *map(decimal, curve))
                for name, curve in curves.items()
            ]
            title = f"{experiment.metric_label} by list depth: {measured.sample.name}"
            yield Table(title, ("system", *map(str, measured.depths)), tuple(rows))


def ppl_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """(Pseudo-)perplexities beside the score that rescoring with the model reaches (Table 7 of the
    paper).
    """
    ppl = experiment.ppl
    if not ppl:
        return
    sets = {measured.sample.name: measured.results for measured in experiment.sets}
    names = [*sets, *sorted({name for _, name in ppl} - sets.keys())]
    rows = []
    for lm, name in sorted(ppl, key=lambda key: names.index(key[1])):
        tree, result = ppl[lm, name], sets.get(name, {}).get(lm)
        figures = [decimal(tree.get(column)) for column in PPL_COLUMNS.values()]
        ends = str(tree.get("oov", NONE)), decimal(result.score if result else None)
        rows.append((name, label_lm(experiment, lm, tree), tree.get("kind", NONE), *figures, *ends))
    header = ("set", "LM", "kind", *PPL_COLUMNS, "OOV", experiment.metric_label)
    rules: dict[str, list[tuple[str, Mapping]]] = {}
    for (lm, _), tree in ppl.items():
        rules.setdefault(tree.get("rules", ""), []).append((lm, tree))
    notes = [
        f"{', '.join(dict.fromkeys(label_lm(experiment, lm, tree) for lm, tree in lms))}: {rule}."
        for rule, lms in rules.items()
        if rule
    ]
    notes.append(
        "A pseudo-perplexity sees both sides of each token: it is lower than a perplexity by nature"
        " and compares only with its like."
    )
    yield Table(
        f"Perplexity beside {experiment.metric_label}", header, tuple(rows), tuple(notes), left=3
    )


def label_lm(experiment: RescoringExperiment, name: str, tree: Mapping) -> str:
    """Return the printed name of what a perplexity is of: a language model, or a mixture of several
    with their weights.
    """
    labels = experiment.names.lms.label
    parts = [
        f"{one['weight']:.2f} {shorten(labels(Path(one['lm']).name))}"
        for one in tree.get("mixture", ())
    ]
    return " + ".join(parts) or labels(name)


def length_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Scores by utterance length."""
    for measured in experiment.judged:
        classes = length_classes(measured.lengths)
        scores = {name: measured.by_length(name) for name in measured.results}
        rows = []
        for i, (bounds, members) in enumerate(zip(LENGTHS, classes, strict=True)):
            if members.any():
                counts = f"{members.sum():,}", f"{measured.lengths[members].sum():,}"
                rows.append((span(bounds), *counts, *(decimal(scores[name][i]) for name in scores)))
        header = ("words", "utterances", "ref. words", *map(experiment.names.label, scores))
        title = f"{experiment.metric_label} by utterance length: {measured.sample.name}"
        yield Table(title, header, tuple(rows))


def span(bounds: tuple[int, int | None]) -> str:
    """Spell a range, as in `3-5`, `0`, `21+`."""
    low, high = bounds
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def training_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each neural model."""
    if not experiment.learning:
        return
    rows = []
    for lm, lines in experiment.learning.items():
        last = next((line for line in reversed(lines) if "seconds" in line), {})
        losses = [line["valid_loss"] for line in lines if "valid_loss" in line]
        figures = [decimal(last.get(key), 0) for key in ("step", "tokens", "seconds")]
        rows.append(
            (experiment.names.lms.label(lm), *figures, decimal(min(losses, default=None), 3))
        )
    note = (
        "Losses are nats a predicted token; they compare only between models of the same objective"
        " and subwords."
    )
    header = ("LM", "steps", "tokens", "seconds", "best valid loss")
    yield Table("Training", header, tuple(rows), (note,))


TABLES: tuple[Callable[[RescoringExperiment], Sequence[Table] | Iterator[Table]], ...] = (
    main_tables,
    criteria_tables,
    weight_tables,
    lambda_tables,
    oracle_tables,
    depth_tables,
    ppl_tables,
    length_tables,
    speed_tables,
    lattice_tables,
    training_tables,
    stage_tables,
)
