"""Configuration declared once, in dataclasses: filled from YAML and `key=value`, written back to
YAML; unknown names are refused.
"""

import dataclasses
import difflib
import functools
import itertools
import math
import operator
import reprlib
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import yaml
from msgspec import Meta

from lmtools.base.errors import UserError
from lmtools.base.files import read_bytes, refuse_pipe
from lmtools.base.grammar import parse_pair

LONGEST = 4 << 20  # bytes of a YAML file; its reader needs a minute for them
MOST = 100_000  # values that aliases and merge keys may make of a YAML file
# PyYAML, of values such as 2024-13-45 or `!!int x`
UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
ANY = Meta(ge=0)  # the range of numbers whose type says none
ENDS = {"ge": ("small", "at least"), "gt": ("small", "more than")} | {
    "le": ("large", "at most"), "lt": ("large", "less than"),
}  # fmt: skip
DEPTH = 4  # of keys whose lines messages name
SHOWN = reprlib.Repr()
SHOWN.maxstring = SHOWN.maxother = 200
SHOWN.maxlevel = 3


def show_value(value) -> str:
    """Return a value for a message; aliases can make a small file a value without end."""
    return SHOWN.repr(value)


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader, but RecursionError where aliases (`*a`, `<<: [*a, *a]`) make more than
    MOST values of a small file, and ConstructorError for a key that comes twice in a mapping.
    """

    def get_single_node(self):
        node = super().get_single_node()
        sizes: dict[int, int] = {}  # values of each node, written without aliases; 0: inside it

        def count(node) -> int:
            if id(node) not in sizes:
                sizes[id(node)] = 0
                refuse_twice(node)
                inner = node.value if isinstance(node, yaml.CollectionNode) else []
                pairs = (part if isinstance(part, tuple) else (part,) for part in inner)
                sizes[id(node)] = 1 + sum(map(count, itertools.chain.from_iterable(pairs)))
            return sizes[id(node)] or len(sizes) + MOST

        if node and count(node) > MOST + len(sizes):
            raise RecursionError
        return node


def refuse_twice(node: yaml.Node) -> None:
    """Raise ConstructorError for a key that a mapping has twice, of which PyYAML takes the last."""
    seen = set()
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
            raise yaml.constructor.ConstructorError(
                problem=f"the key {key.value!r} comes twice", problem_mark=key.start_mark
            )
        seen.add((key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None)


def load_yaml(path) -> dict:
    """Return the mapping in a YAML file; UserError with the line where it is malformed."""
    try:
        refuse_pipe(path)
        content = yaml.load(read_bytes(path, LONGEST), Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        cause = " ".join(str(getattr(error, "problem", error)).split())
        raise UserError(f"{path}{line}: not YAML ({cause}); mend the line") from None
    except RecursionError:
        cause = "nested too deeply, or made too large by aliases (*name)"
        raise UserError(f"{path}: {cause}; write `name: value` lines") from None
    except UNFIT as error:
        raise UserError(
            f"{path}: a value is not of the kind that it looks like ({show_value(error)}); quote it"
        ) from None
    if not isinstance(content, dict | types.NoneType):
        raise UserError(f"{path}:1: expected `name: value` lines; see conf/ for examples")
    return content or {}


def find_lines(path: Path) -> dict[tuple[str, ...], int]:
    """Return the line of each key and entry of a YAML file, and of each line of a text block."""
    lines: dict[tuple[str, ...], int] = {}

    def walk(node, above: tuple[str, ...]) -> None:
        if len(above) == DEPTH:
            return
        inside: list[tuple] = []  # what it is called, where it begins, its node
        if isinstance(node, yaml.MappingNode):
            inside = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inside = [(i, value, value) for i, value in enumerate(node.value)]
        elif isinstance(node, yaml.ScalarNode) and node.style == "|":
            first = node.start_mark.line + 2
            lines.update(((*above, str(i)), first + i) for i in range(len(node.value.splitlines())))
        for key, start, value in inside:
            lines[(*above, str(key))] = start.start_mark.line + 1
            walk(value, (*above, str(key)))

    walk(yaml.compose(read_bytes(path), yaml.SafeLoader), ())
    return lines


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a setting stands, as messages say it: the path and the line of the entry under `keys`
    in the last of `files` that has it, each of which refines those before it.
    """

    files: tuple[Path, ...]
    keys: tuple[str, ...] = ()

    def __truediv__(self, name) -> "Place":
        return dataclasses.replace(self, keys=(*self.keys, str(name)))

    def __str__(self) -> str:
        lines = {path: find_lines(path) for path in self.files}
        for end in range(len(self.keys), 0, -1):
            for path in reversed(self.files):
                if line := lines[path].get(self.keys[:end]):
                    return f"{path}:{line}"
        return f"{self.files[-1]}:1"


def override(tree: dict, assignments: Sequence[str]) -> dict:
    """Return a copy of `tree` with `a.b=value` assignments, whose values are YAML scalars."""
    tree = {k: dict(v) if isinstance(v, dict) else v for k, v in tree.items()}
    for assignment in assignments:
        name, value = parse_pair(
            assignment, "", "an assignment", "write name=value, as in optim.lr=1e-3", empty=True
        )
        *groups, leaf = name.split(".")
        node = tree
        for group in groups:
            inner = node.get(group) or {}
            if not isinstance(inner, dict):
                raise UserError(
                    f"{assignment}: '{group}' is a single setting, no group; leave out what"
                    " follows it"
                )
            node[group] = dict(inner)
            node = node[group]
        try:
            node[leaf] = yaml.load(value, Loader)
        except (yaml.YAMLError, RecursionError, *UNFIT):
            raise UserError(f"{assignment}: cannot read the value; quote it") from None
    return tree


SOMEWHERE = "configuration"  # what settings are of that come from no file


def build(cls, tree: Mapping, source=SOMEWHERE, prefix=""):
    """Return an instance of dataclass `cls` from nested mappings; UserError for what is unfit."""
    if not isinstance(tree, Mapping):
        raise UserError(
            f"{source}: '{prefix.rstrip('.')}' is {show_value(tree)}; expected a group of settings"
        )
    hints = typing.get_type_hints(cls)
    values = {}
    for name, value in tree.items():
        full = f"{prefix}{name}"
        if name not in hints:
            close = difflib.get_close_matches(str(name), hints, 1)
            raise UserError(
                f"{source}: unknown setting '{full}';"
                f" {f'did you mean {close[0]}?' if close else 'known: ' + ', '.join(hints)}"
            )
        values[name] = convert(hints[name], value, source, full)
    for field in dataclasses.fields(cls):
        needed = field.default is field.default_factory is dataclasses.MISSING
        if needed and field.name not in values:
            raise UserError(f"{source}: the setting '{prefix}{field.name}' is missing; give it")
    try:
        return cls(**values)
    # of the class itself, which does not know where its values come from
    except UserError as error:
        raise UserError(str(error) if source == SOMEWHERE else f"{source}: {error}") from None


def convert(kind, value, source, name):
    """Return `value` as type `kind`; '1e-3' counts as a float (YAML 1.1 reads it as text)."""
    if dataclasses.is_dataclass(kind):
        return build(kind, {} if value is None else value, source, f"{name}.")
    union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    options = typing.get_args(kind) if union else (kind,)
    for option in options:
        if dataclasses.is_dataclass(option) and isinstance(value, Mapping):
            return build(option, value, source, f"{name}.")
        if typing.get_origin(option) is dict and isinstance(value, Mapping):
            item = typing.get_args(option)[1]
            return {
                str(key): convert(item, one, source, f"{name}.{key}") for key, one in value.items()
            }
        try:
            return scalar(option, value)
        except (TypeError, ValueError):
            continue
    names = [getattr(option, "__name__", str(option)) for option in options]
    wanted = " | ".join(names).replace("NoneType", "None")
    raise UserError(f"{source}: setting '{name}' is {show_value(value)}; expected {wanted}")


def scalar(kind, value):
    """Return `value` as one plain type; ValueError or TypeError if it is not one."""
    if typing.get_origin(kind) in (list, tuple):
        if not isinstance(value, list | tuple):  # a string would fall apart into letters
            raise TypeError(kind)
        item, *more = typing.get_args(kind)
        if more and ... not in more and len(value) != 1 + len(more):
            raise ValueError(value)
        return typing.get_origin(kind)(scalar(item, v) for v in value)
    if (kind is types.NoneType and value is None) or (kind is dict and isinstance(value, dict)):
        return value
    if kind is float and not isinstance(value, bool):
        if not math.isfinite(number := float(value)):
            raise ValueError(value)
        return number
    if type(value) is kind:
        return value
    raise TypeError(kind)


def check_choices(config, prefix: str, **known: Collection[str]) -> None:
    """Raise UserError for a setting of a dataclass instance that is none of those known."""
    for name, choices in known.items():
        if (value := getattr(config, name)) not in choices:
            raise UserError(f"{prefix}{name}: {value!r} is unknown; known: {', '.join(choices)}")


def check_numbers(config, prefix: str) -> None:
    """Raise UserError for a number of a dataclass instance outside the range of its type
    (`Annotated[float, Meta(ge=0, lt=1)]`), or below 0 where that has none.
    """
    for name, hint in typing.get_type_hints(type(config), include_extras=True).items():
        value, range_ = getattr(config, name), find_range(hint)
        every = value if isinstance(value, tuple | list) else (value,)
        numbers = [number for number in every if isinstance(number, int | float)]
        for end, (fault, remedy) in ENDS.items():
            limit, within = getattr(range_, end), getattr(operator, end)
            if limit is not None and not all(within(number, limit) for number in numbers):
                shown = f"{prefix}{name}: {show_value(value)}"
                raise UserError(f"{shown} is too {fault}; give {remedy} {limit:,}")


def find_range(hint) -> Meta:
    """Return the range of the numbers that a type hint admits."""
    inside = (*getattr(hint, "__metadata__", ()), *map(find_range, typing.get_args(hint)))
    return next((part for part in inside if isinstance(part, Meta) and part != ANY), ANY)


LATE = {"late": True}  # of a field of a dataclass that files of older versions lack


def as_tree(config) -> dict:
    """Return nested mappings of a dataclass instance, without LATE fields at their defaults."""
    late = {f.name: f.default for f in dataclasses.fields(config) if f.metadata.get("late")}
    return {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name not in late or getattr(config, name) != late[name]
    }


def dump(config) -> str:
    """Return YAML of `as_tree`, in declaration order; `build` reads it back."""
    return yaml.safe_dump(as_tree(config), sort_keys=False, allow_unicode=True)


def from_yaml(cls, path, assignments: Sequence[str] = ()):
    """Return an instance of `cls` from a YAML file, its `base:` files and `key=value` on top."""
    return build(cls, override(read_layers(Path(path)), assignments), path)


def read_layers(path: Path) -> dict:
    """Return the mapping in `path` laid over that of its `base:` file, a path relative to it."""
    return functools.reduce(merge, list_layers(path).values(), {})


def list_layers(path: Path) -> dict[Path, dict]:
    """Return the mapping in each file that `path` refines, lowest first, and in `path` itself."""
    layers: dict[Path, dict] = {}
    seen: set[Path] = set()
    while True:
        if path.resolve() in seen:
            raise UserError(f"{path}: is its own base; take the `base:` line out of one of them")
        seen.add(path.resolve())
        layers = {path: (tree := load_yaml(path)), **layers}
        if not (base := tree.pop("base", None)):
            return layers
        above = path.parent / base if isinstance(base, str) and "\0" not in base else None
        if above is None or (above.exists() and not above.is_file()):
            place = Place((path,)) / "base"
            raise UserError(f"{place}: base: {show_value(base)} names no file; name one")
        path = above


def merge(lower: dict, upper: dict) -> dict:
    """Return `upper` laid over `lower`, group by group."""
    both = {
        k: merge(lower[k], v)
        for k, v in upper.items()
        if isinstance(v, dict) and isinstance(lower.get(k), dict)
    }
    return {**lower, **upper, **both}
