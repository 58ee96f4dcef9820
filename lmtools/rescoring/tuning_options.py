"""Options of tuning: what is tuned, by which objective, and which weights are given or bounded."""

from collections.abc import Collection
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.base.grammar import check_text
from lmtools.base.options import check_options, option
from lmtools.evaluate.metrics import METRIC_HELP, find_metric
from lmtools.rescoring.features import LENGTHS, NEAR, REFERENCES, Features
from lmtools.rescoring.folds import FoldPlan, parse_folds
from lmtools.types import PHRASES

FORMS = LINEAR, INTERPOLATION = ("linear", "interpolation")
OBJECTIVES = EXPECTED, EXACT = ("expected", "exact")
ALL = "all"  # in place of names of language models


@dataclass(frozen=True)
class TuningOptions:
    """Options of tuning; `lms` are the names of language-model columns.

    The reference's weight is 1 or the one given by `fix`; by default it is the first of REFERENCES
    that is there, else the lists' first score, and where that is fixed at 0 the next feature,
    language models first.

    Form "interpolation" is (1 - lambda) first pass + lambda LM (Shin et al. 2020) for one LM and no
    other free feature; the first pass is the reference and what is fixed, with these weights. A
    language model's weight is at least 0 with neither ALL nor, in the linear form, its name
    among `negative`: below it a set of this size was learnt by heart.

    Objective "expected" minimises the metric that the lists expect, with no more errors of a
    hypothesis than its reference is long (`minimise_expected`, `sharpen`, `METRICS[metric].cap`);
    "exact" that of the chosen hypotheses as it is (`search`).
    """

    metric: str = option("wer", f"the metric to optimise on the whole set: {METRIC_HELP}")
    objective: str = option(
        EXPECTED,
        "expected optimises the expected metric of the lists (no hypothesis counts more errors than"
        " its reference has words, so that one bad utterance cannot spoil the weights); exact that"
        " of the chosen hypotheses",
        choices=OBJECTIVES,
    )
    form: str = option(
        LINEAR,
        "interpolation: (1 - lambda) first pass + lambda LM, without lengths; the first pass has"
        " weight 1, or that of --fix, as in --fix am=0.1 lm=1",
        choices=FORMS,
    )
    lengths: list[str] | None = option(
        None,
        "lengths of the hypothesis to weigh, with commas between them: words (the word insertion"
        " bonus), characters, log-words (log(1 + words)), or nothing (default: words in the linear"
        " form)",
        choices=LENGTHS,
    )
    fix: dict[str, float] | None = option(
        None, "give a weight instead of tuning it", metavar="NAME=W"
    )
    reference: str | None = option(None, "score whose weight is 1; rank is the place in the list")
    negative: list[str] | None = option(
        None,
        "scores that may have negative weights, such as a cost or a language model to subtract"
        " (density ratio, LODR); all: every language model",
    )
    folds: int | str | None = option(
        None,
        "cross-validate by N random folds, by speaker, or by N groups of speakers (speaker:N):"
        " lmtools rescore then uses weights that did not see the utterance",
        metavar="N|speaker",
    )
    seed: int = option(0, "seed of random folds and of the exact search", least=0)
    lms: Collection[str] = ()

    def __post_init__(self):
        object.__setattr__(self, "metric", find_metric(check_text(self.metric, "metric"))[0])
        check_options(self)
        try:
            _ = self.fold_plan
        except ValueError as error:
            raise UserError(f"folds: {error}; write for instance folds: speaker") from None

    @property
    def fold_plan(self) -> FoldPlan | None:
        """Return the division of utterances into folds; None for no cross-validation."""
        return None if self.folds is None else parse_folds(str(self.folds))

    @property
    def features(self) -> list[str]:
        if self.lengths is None:
            return ["words"] if self.form == LINEAR else []
        return [*self.lengths]

    def at_least_0(self, name: str) -> bool:
        """Return whether the weight of a feature may not be negative."""
        negative = self.negative or ()
        signed = ALL in negative or (name in negative and self.form == LINEAR)
        return name in self.lms and not signed

    def reference_of(self, features: Features) -> str:
        """Return the feature that weights are relative to; UserError where all are 0."""
        order = (
            [self.reference]
            if self.reference
            else [*REFERENCES, features.names[0], *self.lms, *features.names]
        )
        for name in order:
            if name in features.names and (self.fix or {}).get(name) != 0:
                return name
        raise UserError(
            "--fix: 0 for the reference leaves nothing that others scale against; give another"
            " reference or other weights"
        )

    def rescales(self, features: Features) -> bool:
        """Return whether the scale of the weights is free: neither given nor that of margins."""
        given = self.reference or self.fix or self.form == INTERPOLATION
        return not given and not {PHRASES, NEAR} & {*features.names}

    def free(self, features: Features) -> list[str]:
        return [name for name in features.names if name not in self.base(features)]

    def base(self, features: Features) -> dict[str, float]:
        """Return the weights that are given: the reference's and the fixed ones."""
        return {self.reference_of(features): 1.0, **(self.fix or {})}


def check_fit(features: Features, options: TuningOptions, path) -> None:
    """Raise UserError where the options do not fit the features."""
    for named, names in (
        ("--fix", options.fix or ()),
        ("reference", filter(None, [options.reference])),
    ):
        for name in names:
            if name not in features.names:
                raise UserError(
                    f"{named} {name}: {path} has no such feature; it has"
                    f" {', '.join(features.names)}"
                )
    free = options.free(features)
    if options.form == INTERPOLATION and (len(free) != 1 or free[0] not in options.lms):
        others = [name for name in free if name not in options.lms] or list(options.lms)
        raise UserError(
            "form interpolation: one language model goes with the first pass, but"
            f" {', '.join(others) or 'no column'} would be tuned too; give one --scores,"
            " lengths= (none), and --fix the first pass's other scores"
        )


def check_negative(features: Features, options: TuningOptions, path) -> None:
    """Raise UserError for `negative` features that are absent or have a weight."""
    for name in options.negative or ():
        if name == ALL:
            continue
        given = f"negative={name}"
        if name not in features.names:
            raise UserError(
                f"{given}: {path} has no such feature; it has {', '.join(features.names)}"
            )
        if name in options.base(features):
            raise UserError(f"{given}: its weight is given, not tuned; leave it out")
        if options.form == INTERPOLATION:
            raise UserError(f"{given}: lambda is from 0 to 1; tune the linear form")
