"""Parsers of the verbs: options of GROUPS by name, those that belong together, what they read; the
verbs' modules, and commands that a verb runs in its own process, printed ready to paste.
"""

import argparse
import dataclasses
import importlib
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

from lmtools.base.doors import collect, hook, open_door
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say
from lmtools.base.options import list_options, parse_option
from lmtools.base.specs import LMSpec
from lmtools.text.blocks import read_again
from lmtools.text.normaliser import CHOICES, Normaliser, parse_normaliser
from lmtools.text.scripts import find_spacing
from lmtools.verbs.help import FullHelp, HelpParser, Rare
from lmtools.verbs.options import GROUPS

LEARNING = "applied to the training text, and later to every hypothesis that the model scores"
# options by which whoever gives two means both; of others, as of argparse, the last counts, which
# is how scripts change their own defaults
ONCE = {"against", "hyp", "lm", "phrases", "words"}


class StoreOnce(argparse._StoreAction):
    """Action of an option that is refused if given again, if in ONCE; of several it takes all."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Store the value, or values, unless the option has one."""
        before = parser.given.get(self.dest)
        if before is not None and self.nargs == "+":
            values = [*before, *values]
        elif before is not None and self.dest in ONCE:
            raise argparse.ArgumentError(self, "is given twice; leave one out")
        parser.given[self.dest] = values
        super().__call__(parser, namespace, values, option_string)


class Parser(HelpParser):
    """A parser with the groups of GROUPS; --help leaves out those that are empty."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.given: dict[str, object] = {}  # values of options with StoreOnce in what is parsed
        self.register("action", None, StoreOnce)
        self.register("action", "store", StoreOnce)
        self.groups = {title: self.add_argument_group(title) for title in GROUPS}
        self.groups["options"] = self

    def parse_known_args(self, args=None, namespace=None):
        """Parse as argparse does, each time anew."""
        self.given = {}
        return super().parse_known_args(args, namespace)

    def add(self, *names: str, among=None, **changes) -> None:
        """Declare options of GROUPS, in their group or `among` some, with `changes`."""
        for name in names:
            title = next(title for title, options in GROUPS.items() if name in options)
            declared = GROUPS[title][name]
            takes = declared | changes
            if isinstance(declared["help"], Rare) and takes["help"] != argparse.SUPPRESS:
                takes["help"] = Rare(takes["help"])
            (among or self.groups[title]).add_argument(name, **takes)


def add_common(parser: Parser, inner: bool = False) -> None:
    """Declare every verb's options; an `inner` parser, of an action, hides them."""
    hidden = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS} if inner else {}
    parser.add(*GROUPS["every verb"], **hidden)
    parser.add_argument("--help-all", action=FullHelp, help="show every option and exit")


def add_actions(parser: Parser, actions: Mapping[str, tuple], required=True) -> Iterator[Parser]:
    """Yield the parser of each action of a verb; after what is done with it, the first of the
    action's two functions, whose docstring says what it is for, declares its options.
    """
    subs = parser.add_subparsers(dest="action", metavar="|".join(actions), required=required)
    for name, (declare, run) in actions.items():
        purpose = " ".join((declare.__doc__ or "").split())
        sub = subs.add_parser(
            name, help=purpose[0].lower() + purpose[1:].rstrip("."), description=purpose
        )
        add_common(sub, inner=True)
        yield sub
        declare(sub)
        sub.set_defaults(act=run)


def add_references(
    parser: Parser, what: str = "lists", purpose: str = "", required=False, **lines
) -> None:
    """Declare --ref and --ref-lines of `what`; `lines` change what --ref-lines takes."""
    refs = parser.groups["input"].add_mutually_exclusive_group(required=required)
    parser.add("--ref", among=refs, help=f"references{purpose}: Kaldi text, trn, stm or ctm")
    help_text = f"{GROUPS['input']['--ref-lines']['help']} the {what}"
    parser.add("--ref-lines", among=refs, help=help_text, **lines)


def add_lm(parser: Parser, **changes) -> None:
    """Declare --lm, which takes a specification's options; `changes` to argparse's."""
    parser.add("--lm", **changes)
    parser.groups["language model"].description = describe_options(
        "an LM, as in --lm DIR,intact=true,oov_penalty=7", LMSpec
    )


def recogniser_options(args) -> list[str]:
    """Return the options of --opts, and --vad as one of them."""
    vad = [] if args.vad is None else [f"vad={str(args.vad).lower()}"]
    return [*vars(args).get("opts", []), *vad]


def add_phrases(parser: Parser, **changes) -> None:
    """Declare --phrases, which takes a glossary's options; `changes` to argparse's."""
    parser.add("--phrases", **changes)
    if kind := hook("glossary"):
        parser.groups["input"].description = describe_options(
            "a glossary, as in --phrases F,spelling=true", kind
        )


def describe_options(what: str, kind: type) -> Rare:
    """Return the description of a group: the declared options of a dataclass."""
    words = (f"{name}: {declared.help}" for name, (*_, declared) in list_options(kind).items())
    return Rare(f"options of {what}: " + "; ".join(words))


def parse_phrases(text: str | None, option: str = "--phrases"):
    """Return what the value of an option says of a glossary; None without one."""
    return open_door("phrases", "glossary:PhraseSpec", option).parse(text) if text else None


def add_settings(parser: Parser, kind: type, names: Iterable[str] = ()) -> None:
    """Declare --set for options of a dataclass: `names`, or all."""
    listed, lines = list_options(kind), []
    names = tuple(names) or tuple(listed)
    for name in names:
        _, default, declared = listed[name]
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default).lower()
        told = default in (None, ()) or "(default:" in declared.help
        usual = "" if told else f" (default: {shown})"
        lines.append(textwrap.fill(f"{name}: {declared.help}{usual}", subsequent_indent=" " * 4))
    parser.set_defaults(known_settings=names)
    takes = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME=VALUE"}
    parser.add_argument("--set", **takes, help=Rare("set a rare option by its name, see below"))
    parser.add_argument_group("names of --set", Rare("\n".join(lines)))


def read_settings(args: argparse.Namespace, kind: type) -> dict[str, object]:
    """Return what --set gives to options of a dataclass; UserError for what is none."""
    values = {}
    for name, text in parse_pairs(args.set, "--set", "NAME=VALUE", empty=True).items():
        if name not in args.known_settings:
            known = ", ".join(args.known_settings)
            raise UserError(f"--set {name}: no such option; known: {known}")
        values[name] = parse_option(kind, name, text)
    return values


def add_normaliser(parser: Parser, help_text: str = LEARNING, **case) -> None:
    """Declare the normaliser's options; `case` changes what argparse takes for --case."""
    parser.groups["normaliser"].description = help_text
    for name in GROUPS["normaliser"]:
        parser.add(name, **(case if name == "--case" else {}))


def normaliser_of(args: argparse.Namespace, texts: Iterable[str] = ()) -> Normaliser:
    """Return the normaliser asked for: the named set, refined by single options; by letters, which
    is said, if one of the `texts` that an n-gram learns has no blanks between words.
    """
    given = {name: value for name in CHOICES if (value := getattr(args, name)) is not None}
    normaliser = dataclasses.replace(parse_normaliser(args.normaliser or "none"), **given)
    for path in texts if normaliser.letters == "keep" else ():
        if (spacing := find_spacing(read_again([path]))).bare:
            say(f"{path}: {spacing.language} without blanks between words; modelled by letters")
            return dataclasses.replace(normaliser, letters="split")
    return normaliser


def add_vectors(parser: Parser, **pool) -> None:
    """Declare how vectors are made; `pool` changes what argparse takes for --pool."""
    for name in GROUPS["sentence vectors"]:
        parser.add(name, **(pool if name == "--pool" else {}))


def repeat_options(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return options `names` of GROUPS that are not at their defaults, as words."""
    words = []
    declared = {name: takes for group in GROUPS.values() for name, takes in group.items()}
    for name in names:
        value, usual = getattr(args, name[2:].replace("-", "_")), declared[name].get("default")
        if declared[name].get("action") == "store_true":
            words += [name] * value
        elif value != usual:
            words += [name, str(value)]
    return words


def find_module(verb: str) -> ModuleType:
    """Import the module of a verb: of lmtools/verbs, or of the door that brings it."""
    brought = collect("VERBS").get(verb)
    return importlib.import_module(brought[2] if brought else f"lmtools.verbs.{verb}")


def make_parser(verb: str, **more) -> Parser:
    module, parser = find_module(verb), Parser(prog=f"lmtools {verb}", **more)
    parser.examples = module.EXAMPLES
    add_common(parser)
    module.arguments(parser)
    parser.set_defaults(verb=verb, run=module.run)
    return parser


def run_command(words: list[str]) -> int:
    """Print the command, ready to paste, run it in this process, and return its exit status."""
    print(shlex.join(["lmtools", *words]), flush=True)
    args = make_parser(words[0]).parse_args(words[1:], argparse.Namespace(typed=words))
    return args.run(args) or 0
