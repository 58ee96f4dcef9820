import os
from dataclasses import dataclass, field

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.base.config import build, dump, from_yaml, load_yaml, override, read_layers


@dataclass(frozen=True)
class Optim:
    lr: float = 1e-4
    steps: int = 10
    betas: tuple[float, ...] = (0.9, 0.999)


@dataclass(frozen=True)
class Settings:
    name: str
    optim: Optim = field(default_factory=Optim)
    shuffle: bool = True
    limit: int | None = None
    tags: list[str] = field(default_factory=list)
    extra: dict = field(default_factory=dict)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"name": "a"}, Settings("a")),
        # YAML 1.1 reads 1e-3 as text
        ({"name": "a", "optim": {"lr": "1e-3"}}, Settings("a", Optim(lr=1e-3))),
        ({"name": "a", "optim": {"lr": 1}}, Settings("a", Optim(lr=1.0))),
        ({"name": "a", "optim": None}, Settings("a")),
        ({"name": "a", "limit": 5, "shuffle": False}, Settings("a", shuffle=False, limit=5)),
        (
            {"name": "a", "limit": None, "optim": {"betas": [0, 1]}},
            Settings("a", Optim(betas=(0.0, 1.0))),
        ),
        (
            {"name": "a", "tags": ["x"], "extra": {"k": [1]}},
            Settings("a", tags=["x"], extra={"k": [1]}),
        ),
    ],
)
def test_build(tree, expected):
    built = build(Settings, tree)
    assert built == expected
    assert type(built.optim.lr) is float


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"nane": "a"}, r"F: unknown setting 'nane'; did you mean name\?"),
        (
            {"name": "a", "optim": {"zzz": 1}},
            "F: unknown setting 'optim.zzz'; known: lr, steps, betas",
        ),
        ({"name": "a", "optim": {"steps": 1.5}}, "F: setting 'optim.steps' is 1.5; expected int"),
        ({"name": "a", "optim": {"steps": True}}, "F: setting 'optim.steps' is True; expected int"),
        ({"name": "a", "optim": {"lr": "fast"}}, "F: setting 'optim.lr' is 'fast'; expected float"),
        ({"name": "a", "optim": {"lr": None}}, "F: setting 'optim.lr' is None; expected float"),
        ({"name": "a", "optim": 3}, "F: 'optim' is 3; expected a group of settings"),
        ({"name": "a", "tags": "x"}, "F: setting 'tags' is 'x'; expected list"),
        ({"name": "a", "limit": "x"}, r"F: setting 'limit' is 'x'; expected int \| None"),
        ({"name": 5}, "F: setting 'name' is 5; expected str"),
        ({}, "F: the setting 'name' is missing; give it"),
        ({"name": "a", "optim": 0}, "F: 'optim' is 0; expected a group of settings"),
    ],
)
def test_refusals(tree, message):
    with pytest.raises(UserError, match=message):
        build(Settings, tree, "F")


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=5)
EVERY = st.builds(
    Settings,
    name=TEXTS,
    optim=st.builds(
        Optim, lr=FLOATS, steps=st.integers(), betas=st.lists(FLOATS, max_size=3).map(tuple)
    ),
    shuffle=st.booleans(),
    limit=st.none() | st.integers(),
    tags=st.lists(TEXTS, max_size=3),
)


@settings(max_examples=50, deadline=None)
@given(EVERY)
def test_dump_is_read_back(one):
    assert build(Settings, yaml.safe_load(dump(one))) == one


@pytest.mark.parametrize(
    ("tree", "assignments", "expected"),
    [
        ({}, ["a=1", "b.c=x", "b.d=1e-3"], {"a": 1, "b": {"c": "x", "d": "1e-3"}}),
        ({"b": {"c": 1, "d": 2}}, ["b.c=null"], {"b": {"c": None, "d": 2}}),
        ({"a": 1}, ["a=x=y"], {"a": "x=y"}),
        ({"a": {"b": {"c": 1, "d": 1}}}, ["a.b.c=2"], {"a": {"b": {"c": 2, "d": 1}}}),
        ({"a": None}, ["a.b=[1, 2]"], {"a": {"b": [1, 2]}}),
    ],
)
def test_override(tree, assignments, expected):
    before = repr(tree)
    assert override(tree, assignments) == expected
    assert repr(tree) == before


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lr", "lr: not an assignment; write name=value"),
        ("a.b=1", "'a' is a single setting, no group"),
        ("b=[1", "cannot read the value; quote it"),
    ],
)
def test_bad_assignments(assignment, message):
    with pytest.raises(UserError, match=message):
        override({"a": 1}, [assignment])


def test_layers(tmp_path):
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf/top.yaml", "name: top\noptim: {lr: 1, steps: 1}\nlimit: 1\n")
    write(tmp_path / "conf/middle.yaml", "base: top.yaml\noptim: {steps: 2}\n")
    low = write(tmp_path / "low.yaml", "base: conf/middle.yaml\nlimit: 3\n")
    assert from_yaml(Settings, low, ["name=given"]) == Settings("given", Optim(1.0, 2), limit=3)


def test_circle_of_layers(tmp_path):
    write(tmp_path / "a.yaml", "base: b.yaml\n")
    write(tmp_path / "b.yaml", "base: a.yaml\n")
    with pytest.raises(UserError, match=r"a\.yaml: is its own base"):
        from_yaml(Settings, tmp_path / "a.yaml")


def test_missing_base_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no\.yaml: cannot read"):
        from_yaml(Settings, write(tmp_path / "a.yaml", "base: no.yaml\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", r"c\.yaml:2: not YAML"),
        ("- a\n", r"c\.yaml:1: expected `name: value` lines"),
        ("just text\n", r"c\.yaml:1: expected `name: value` lines"),
        ("a: \x00\n", r"c\.yaml: not YAML"),
    ],
)
def test_malformed_yaml(tmp_path, text, message):
    with pytest.raises(UserError, match=message) as refusal:
        load_yaml(write(tmp_path / "c.yaml", text))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, "c.yaml: nested too deeply"),
        ("a: " + "{b: " * 5000, "c.yaml: nested too deeply"),
        ("a: 2024-13-45", "c.yaml: a value is not of the kind that it looks like"),
        ("a: !!int x", "c.yaml: a value is not of the kind"),
        ("a: !!bool x", "c.yaml: a value is not of the kind"),
        ("a: !!timestamp x", "c.yaml: a value is not of the kind"),
        ("a: " + "x" * (4 << 20), "c.yaml: more than 4 MB"),
    ],
)
def test_yaml_that_its_reader_stumbles_over(tmp_path, text, said):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UserError, match=said):
        load_yaml(tmp_path / "c.yaml")


@pytest.mark.parametrize("value", ["[" * 5000, "2024-13-45", "!!int x"])
def test_a_value_that_its_reader_stumbles_over(value):
    with pytest.raises(UserError, match="cannot read the value; quote it"):
        override({}, [f"a={value}"])


MERGED = "{{<<: [{}]}}"  # PyYAML copies what is merged


@pytest.mark.parametrize("form", ["[{}]", MERGED])
def test_aliases_do_not_make_a_small_file_large(tmp_path, form):
    """A value of ten lists of ten lists and so on, thirty deep."""
    lines = [
        "a0: &a0 {x: 1}",
        *(f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 30)),
    ]
    (tmp_path / "c.yaml").write_text("\n".join(lines))
    with pytest.raises(UserError, match=r"c.yaml: .*too large by aliases"):
        load_yaml(tmp_path / "c.yaml")
    for what in ("[*a]", "{<<: *a}"):
        (tmp_path / "c.yaml").write_text(f"a: &a {what}")
        with pytest.raises(UserError, match=r"c.yaml: .*too large by aliases"):
            load_yaml(tmp_path / "c.yaml")


def test_aliases_as_people_use_them(tmp_path):
    lines = ["usual: &usual {x: 1, y: 2}", "a: {<<: *usual, y: 3}", "b: *usual"]
    (tmp_path / "c.yaml").write_text("\n".join([*lines, f"many: [{'1, ' * 200_000}]"]))
    tree = load_yaml(tmp_path / "c.yaml")
    assert tree["a"] == {"x": 1, "y": 3} and tree["b"] == tree["usual"]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UserError, match=r"config.yaml: is a pipe; give a file"):
        load_yaml(tmp_path / "config.yaml")
    (tmp_path / "c.yaml").write_text("steps: 1\nbase: config.yaml\n")
    with pytest.raises(UserError, match=r"c.yaml:2: base: 'config.yaml' names no file; name one"):
        read_layers(tmp_path / "c.yaml")


def test_a_key_comes_once(tmp_path):
    (tmp_path / "c.yaml").write_text("arch: &a {layers: 1}\nbig: {<<: *a, layers: 2}\nsteps: 9\n")
    assert load_yaml(tmp_path / "c.yaml")["big"] == {"layers": 2}
    (tmp_path / "c.yaml").write_text("steps: 1\narch: {layers: 1}\nsteps: 9\n")
    with pytest.raises(UserError, match=r"c\.yaml:3: .*the key 'steps' comes twice"):
        load_yaml(tmp_path / "c.yaml")
