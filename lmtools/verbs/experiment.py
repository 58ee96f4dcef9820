"""An experiment's file as the verbs take it: each entry is the options of a single call."""

from argparse import Namespace
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from lmtools.base.config import convert
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.base.options import list_options, parse_option
from lmtools.base.specs import LMSpec, split_options
from lmtools.formats.registry import parse_specifier
from lmtools.rescoring.experiment import (
    ExperimentPlan,
    LMEntry,
    SystemPlan,
    check_known,
    fill_path,
    find_lm,
    read_experiment,
    read_scores,
)
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.types import EMPTY
from lmtools.verbs.options import COLUMN, EMBED_POOL
from lmtools.verbs.parser import Parser, add_vectors, read_settings
from lmtools.verbs.risk import add_risk


class EntryParser(Parser):
    """A parser of an entry of the file, with the options of `declare`; raises UserError."""

    def __init__(self, declare: Callable[[Parser], object]):
        super().__init__(add_help=False)
        declare(self)

    def error(self, message: str):
        raise UserError(message)

    def read(self, entry: LMEntry, others: Collection[str] = ()) -> dict[str, object]:
        """Return an entry's values of options by name; UserError with the wrong line."""
        known = {flag[2:].replace("-", "_"): flag for flag in self._option_string_actions}
        values: dict[str, object] = {}
        for key, value in entry.options.items():
            place = entry.place / key
            check_known(key, [*known, *others], place, "option")
            action = self._option_string_actions[known[key]]
            word = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            switch = isinstance(value, bool) and action.nargs == 0
            words = [known[key]] * value if switch else [f"{known[key]}={word}"]
            try:
                values[action.dest] = getattr(self.parse_args(words), action.dest)
            except UserError as error:
                raise UserError(f"{place}: {error}; mend {key}") from None
        return values

    def complete(self, args: Namespace, entry: LMEntry) -> dict[str, object]:
        """Return every option's value: the command line's, else the entry's, else the default."""
        usual = vars(self.parse_args([]))
        given = {name: getattr(args, name, value) for name, value in usual.items()}
        return usual | self.read(entry) | {n: v for n, v in given.items() if v != usual[n]}


def column_parser(entry: LMEntry) -> EntryParser:
    """Return the parser of a column's options: those of `lmtools score`, or of `lmtools mbr`."""
    if entry.lm is not None:
        return EntryParser(lambda parser: parser.add(*COLUMN))
    return EntryParser(add_risk)


def split_entry(entry: LMEntry) -> tuple[LMEntry, dict[str, object]]:
    """Split a column's entry into its own options and its language model's."""
    declared = list_options(LMSpec) if entry.lm is not None else {}
    values = {name: value for name, value in entry.options.items() if name in declared}
    for name, value in values.items():
        values[name] = convert(declared[name][0], value, entry.place / name, name)
        try:
            LMSpec("", **{name: values[name]})
        except UserError as error:
            raise UserError(f"{entry.place / name}: {error}; mend {name}") from None
    rest = {name: value for name, value in entry.options.items() if name not in values}
    return replace(entry, options=rest), values


def specify(plan: ExperimentPlan, lm: str, template: str, options=EMPTY) -> str:
    """Return a language model's specification: `template`'s options, then `options`."""
    place, given = split_options(template)
    spec = LMSpec.parse(find_lm(plan, lm, place), **options)
    return str(replace(spec, **{n: parse_option(LMSpec, n, text) for n, text in given.items()}))


def vectors_parser() -> EntryParser:
    """Return the parser of how vectors are made: options of `lmtools embed`."""
    return EntryParser(partial(add_vectors, **EMBED_POOL))


def load_experiment(path: str) -> ExperimentPlan:
    """Read the file and check all entries' options; UserError with the wrong line."""
    plan = read_experiment(path)
    for entry in plan.columns.values():
        rest, _ = split_entry(entry)
        others = list_options(LMSpec) if entry.lm is not None else ()
        values = column_parser(entry).read(rest, others)
        if values.get("reverse") and not entry.source:
            raise UserError(f"{entry.place}: reverse: of which source? write source: true too")
        if values.get("written") and entry.source:
            raise UserError(f"{entry.place}: written: is for recognisers; leave it out, or source")
    for entry in plan.vectors.values():
        vectors_parser().read(entry)
    return plan


def split_columns(args: Namespace) -> list[Namespace]:
    """Return the call of `lmtools score`, or of `lmtools mbr` (`lm` of None), for each column."""
    plan = load_experiment(args.experiment)
    need("columns", plan.columns, args, args.nbest)
    return [one_column(args, plan, name) for name in plan.columns]


def one_column(args: Namespace, plan: ExperimentPlan, name: str) -> Namespace:
    entry, options = split_entry(plan.columns[name])
    values = column_parser(entry).complete(args, entry)
    out = fill_path(args.out, "column", name)
    if entry.lm is None:
        return Namespace(**vars(args) | values | {"lm": None, "out": out})
    if entry.source and not (args.source or args.source_lines):
        raise UserError(
            f"{entry.place}: {name} reads what the lists translate; give --source or --source-lines"
        )
    values |= {"lm": specify(plan, entry.lm, args.lm, options), "out": out}
    values |= {} if entry.source else {"source": None, "source_lines": None}
    return Namespace(**vars(args) | values)


def split_lms(args: Namespace) -> list[Namespace]:
    """Return the call of `lmtools ppl` for each LM of the columns, but translators."""
    plan = load_experiment(args.experiment)
    for option, given in (("--mix", args.mix), ("--tune-on", args.tune_on), ("--lm", args.lm[1:])):
        if given:
            raise UserError(f"{option}: a mixture; leave it out, or --experiment")
    need("columns", plan.trained, args, args.text)
    return [
        Namespace(
            **vars(args)
            | {"lm": [specify(plan, lm, args.lm[0])]}
            | ({"out": fill_path(args.out, "lm", lm)} if args.out else {})
        )
        for lm in plan.trained
    ]


def split_vectors(args: Namespace) -> list[Namespace]:
    """Return the call of `lmtools embed` for each entry of `vectors`."""
    plan = load_experiment(args.experiment)
    need("vectors", plan.vectors, args, args.text)
    return [
        Namespace(
            **vars(args)
            | vectors_parser().complete(args, entry)
            | {"lm": find_lm(plan, entry.lm, args.lm), "out": fill_path(args.out, "vectors", name)}
        )
        for name, entry in plan.vectors.items()
    ]


def load_plans(args: Namespace) -> dict[str, SystemPlan] | None:
    """Return what each system of --experiment takes; None without it."""
    return load_systems(args).plans if args.experiment else None


def load_systems(args: Namespace) -> ExperimentPlan:
    plan = load_experiment(args.experiment)
    need("systems", plan.systems, args)
    return plan


def complete_tuning(args: Namespace) -> tuple[TuningOptions, dict[str, SystemPlan] | None]:
    """Return the options of `lmtools tune`, and what each system takes, if any."""
    plan = load_systems(args) if args.experiment else ExperimentPlan()
    flags = {name: getattr(args, name) for name in ("metric", "folds", "seed")}
    given = {name: value for name, value in flags.items() if value is not None}
    given |= read_settings(args, TuningOptions)
    given["fix"] = (plan.tuning.fix or {}) | dict(args.fix)
    return replace(plan.tuning, **given), plan.plans if args.experiment else None


def read_all(args: Namespace, nbests, plans: dict[str, SystemPlan] | None):
    """Return the columns, those of a glossary with them, and the plans of systems."""
    columns, systems = read_scores(args.scores, plans, nbests, args.nbest)
    if args.phrases:
        scored = columns, systems
        read_phrases = open_door("phrases", "column:read_phrases", "--phrases")
        columns, systems, doubts = read_phrases(args.phrases, scored, nbests, args.nbest)
        say_lines(doubts)
    return columns, systems


def need(section: str, entries: Collection[str], args: Namespace, pipe: str = "") -> None:
    """UserError where a section is empty, or several entries would read one `pipe`."""
    if not entries:
        raise UserError(f"{args.experiment}:1: no {section}; write them under `{section}:`")
    if len(entries) > 1 and (pipe == "-" or parse_specifier(pipe)):
        raise UserError(f"{pipe}: a pipe, but {len(entries)} {section} read it; give a file")
