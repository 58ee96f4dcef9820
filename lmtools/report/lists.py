"""The lists of an experiment, the systems that chose texts for them, and how well these did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmtools.base.errors import UserError
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.significance import RESAMPLES
from lmtools.report.artifacts import read_models, read_systems
from lmtools.report.measure import (
    SEED,
    Measured,
    Sample,
    System,
    data_beside,
    judged,
    lists_beside,
    measure,
    read_samples,
)
from lmtools.report.style import NOTHING, LmPart, Names, Style, SystemParts, load_style
from lmtools.rescoring.experiment import ExperimentPlan
from lmtools.rescoring.tuning_options import INTERPOLATION
from lmtools.rescoring.weights import (
    FIRST_PASS,
    LATTICES,
    SCORES,
    SystemFacts,
    Weights,
    describe_lm,
)


def find_makeups(
    weights: Mapping[str, Weights], models: Mapping[str, str]
) -> dict[str, SystemParts]:
    """Return the parts of each system; `models` are hashes of the experiment's own."""
    makeups = {}
    for name, tuned in weights.items():
        lms = (describe_lm(*item, SCORES) for item in tuned.signatures.items())
        made = find_makeup(tuned.system or SystemFacts(tuple(lms), FIRST_PASS), models)
        interpolated = tuned.search.get("form") == INTERPOLATION
        makeups[name] = made._replace(interpolated=interpolated)
    return makeups


def find_makeup(facts: SystemFacts, models: Mapping[str, str]) -> SystemParts:
    """Return the parts of the system that `facts` describe, without the first pass's own scores."""
    parts = []
    for lm in facts.lms:
        if lm.source == SCORES or lm.signature:
            value = lm.signature.get("model", "")
            same = [name for name, hashes in models.items() if value in hashes.split("/")]
            # scores without normalisation are those of the model of the same hash
            name = same[0] if same and not lm.normalised else lm.name
            parts.append(LmPart(name, lm.score, lm.normalised))
    return SystemParts(tuple(parts), facts.lists == LATTICES)


def find_lattice_makeup(report: Mapping, models: Mapping[str, str]) -> SystemParts:
    """Return the language models in rescored lattices, by what `lattice rescore --report` wrote."""
    lms = (describe_lm(*item, SCORES) for item in (report.get("signatures") or {}).items())
    return find_makeup(SystemFacts(tuple(lms), LATTICES), models)


@dataclass(frozen=True, kw_only=True)
class RescoredLists:
    """Sets of lists, systems in printing order, and the names of both."""

    home: Path
    names: Names
    metric: str  # that weights were tuned to, a key of METRICS
    samples: tuple[Sample, ...]
    systems: Mapping[str, System]
    # by (system, set): what rescoring lattices took and gave
    lattices: Mapping[tuple[str, str], Mapping]
    # by (system, set): what `lmtools evaluate` wrote, by rules of its own
    scored: Mapping[tuple[str, str], Mapping]
    # by (system, set): networks of the words that it chose (networks.report.WordConfidences)
    networks: Mapping[tuple[str, str], Any]
    hashes: Mapping[str, str]  # language model -> hash, from the headers of its scores
    glossary: Any = None  # of the door phrases, whose words are judged by themselves
    plan: ExperimentPlan = field(default_factory=ExperimentPlan)  # groups, planned comparisons

    @cached_property
    def sets(self) -> list[Measured]:
        """Every set with every system's score."""
        return measure(self.home, self.samples, self.systems, self.metric, groups=self.plan.groups)

    @property
    def judged(self) -> list[Measured]:
        """The sets that weights were not tuned on; all, if there are no others."""
        names = {sample.name for sample in judged(self.samples)}
        return [measured for measured in self.sets if measured.sample.name in names]

    def words_of(self, place: str) -> dict[str, Any]:
        return {name: held for (name, on), held in self.networks.items() if on == place}

    def lattice_makeup(self, system: str) -> SystemParts:
        tree = next(tree for (name, _), tree in self.lattices.items() if name == system)
        return find_lattice_makeup(tree, self.hashes)

    @property
    def sign(self) -> int:
        """Return 1 where the lowest score is the best, -1 where the highest is."""
        return 1 if METRICS[self.metric].lower_is_better else -1

    @property
    def metric_label(self) -> str:
        """The metric's printed name with its unit."""
        kind = METRICS[self.metric]
        return f"{kind.title} %" if isinstance(kind, ErrorRate) else kind.title

    @property
    def sizes(self) -> list[str]:
        return [
            f"weights tuned on {sample.size}" if sample.tuned else sample.size
            for sample in sorted(self.samples, key=lambda sample: sample.tuned)
        ]

    @property
    def remarks(self) -> list[str]:
        """Sentences on how figures are to be read."""
        tuned = (system.weights for system in self.systems.values() if system.weights)
        crossed = dict.fromkeys(
            f"Weights tuned on {weights.dev.path} are {weights.folds.describe()}: each of its"
            f" {weights.dev.utterances:,} utterances is chosen for by weights that did not see it."
            for weights in tuned
            if weights.folds
        )
        return [f"Metric: `{METRICS[self.metric].signature}`.", *crossed]

    @property
    def draws(self) -> list[str]:
        """The seeds of tuning and of the bootstraps, sacrebleu's too where it was run."""
        tuned = (system.weights for system in self.systems.values() if system.weights)
        searches = [weights.search for weights in tuned]
        seeds = {search["seed"] for search in searches if "seed" in search}
        tuning = f"tuning seed {', '.join(map(str, sorted(seeds)))}" if seeds else ""
        results = [result for measured in self.judged for result in measured.results.values()]
        tests = [
            f"p (sacreBLEU) by sacreBLEU's paired bootstrap of {test.resamples:,} resamples, seed"
            f" {test.seed}"
            for test in [result.sacre for result in results if result.sacre][:1]
        ]
        return [tuning, f"bootstrap of {RESAMPLES:,} resamples, seed {SEED}", *tests]


def read_names(home: Path, style: Style | None = None) -> Names:
    """Read the names of the systems in directory `home`, for those who print of them alone."""
    systems = {name: weights for name, (weights, _) in read_systems(home).items()}
    return name_systems(systems, read_models(home), style)


def name_systems(
    weights: Mapping[str, Weights | None], hashes: Mapping[str, str], style: Style | None
) -> Names:
    known = {name: tuned for name, tuned in weights.items() if tuned}
    return Names(style or load_style(), find_makeups(known, hashes))


def arrange(entries: Mapping, names: Names) -> dict:
    """Return a mapping by name, or by (name, set), in printing order."""
    name_of = {key: key if isinstance(key, str) else key[0] for key in entries}
    order = names.ordered(set(name_of.values()))
    return {key: entries[key] for key in sorted(entries, key=lambda key: order.index(name_of[key]))}


def collect_lists(
    home: Path, nbests: Sequence[str], parts: Mapping[str, Mapping], style: Style | None
) -> tuple[RescoredLists, list[str]]:
    """Collect the lists in the files `nbests` (default: data/*/nbest.jsonl beside `home`) and the
    systems, hashes and lattices of `parts`; return them with a line for each set left out.
    """
    weights = {name: tuned for name, (tuned, _) in parts["systems"].items()}
    paths = [Path(path) for path in nbests] or lists_beside(home)
    if not paths:
        raise UserError(
            f"{data_beside(home)}/*/nbest.jsonl: no N-best lists (nor .gz, .xz); give them with"
            " --nbest"
        )
    samples, dropped = read_samples(paths, weights)
    names = name_systems(weights, parts["hashes"], style)
    known = [sample.name for sample in samples]
    spoken: dict = {}
    for (name, place), held in parts["networks"].items():
        spoken.setdefault(name, (None, {}))[1][place] = held.texts
    # networks of words are of utterances, no words of which are joined
    refs = {sample.name: sample.refs for sample in samples if not sample.segments}
    systems = {
        name: System(
            tuned,
            {sample: texts[sample] for sample in known if sample in texts},
            names.systems.get(name, NOTHING),
        )
        for name, (tuned, texts) in arrange(spoken | parts["systems"], names).items()
    }
    lists = RescoredLists(
        home=home,
        names=names,
        metric=next((tuned.metric for tuned in weights.values() if tuned), "wer"),
        samples=samples,
        systems=systems,
        lattices=arrange(parts["lattices"], names),
        scored=arrange(parts["scored"], names),
        networks={
            key: replace(held, refs=refs[key[1]])
            for key, held in arrange(parts["networks"], names).items()
            if key[1] in refs
        },
        hashes=arrange(parts["hashes"], names.lms),
        plan=names.style.plan,
    )
    return lists, dropped
