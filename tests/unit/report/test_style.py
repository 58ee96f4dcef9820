"""What YAML files say of reports: how they refine the defaults, what is refused."""

import shutil
from pathlib import Path

import pytest
import yaml

from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.report.style import DEFAULTS, LmPart, Look, Names, SystemParts, load_style
from lmtools.verbs.experiment import load_experiment

LOOK = {"light": "#112233", "dark": "#445566", "marker": "s", "line": ":"}


@pytest.fixture
def conf(tmp_path):
    """Writes conf/report.yaml."""

    def write(text: str) -> Path:
        (tmp_path / "report.yaml").write_text(text)
        return tmp_path / "report.yaml"

    return write


def test_a_recipe_refines_entry_by_entry(conf):
    tree = {
        "order": ["tta", "*", "ngram"],
        "lms": {"mine": {"label": "Mine", "look": LOOK}, "tta": {"label": "Ours"}},
        "systems": {"best": {"label": "the best"}},
    }
    style, usual = load_style(conf(yaml.safe_dump(tree))), load_style()
    assert style.lms["mine"].look == Look("#112233", "#445566", "s", ":")
    assert style.lms["tta"].look == usual.lms["tta"].look
    names = Names(style, {"best": SystemParts((LmPart("tta"), LmPart("mine")))})
    assert names.label("best") == "the best" and names.lms.label("tta") == "Ours"
    assert names.lms.ordered(["ngram", "mine", "tta"]) == ["tta", "mine", "ngram"]


def test_the_defaults_and_those_of_recipes_are_sound():
    assert load_style(DEFAULTS) == load_style()
    recipes = list((Path(__file__).parents[3] / "egs").glob("*/conf/report.yaml"))
    assert recipes and all(load_style(path).lms for path in recipes)


def test_the_experiments_of_recipes_are_sound():
    found = 0
    egs = Path(__file__).parents[3] / "egs"
    for path in (*egs.glob("*/conf/*.yaml"), *egs.glob("*/studies/conf/*.yaml")):
        if load_yaml(path).keys() & {"columns", "vectors"}:
            home = egs / path.relative_to(egs).parts[0]
            plan, report = load_experiment(str(path)), home / "conf/report.yaml"
            names = Names(load_style(report, plan), dict.fromkeys(plan.systems, SystemParts()))
            assert names.ordered(sorted(plan.systems)) == list(plan.systems)
            found += 1
    assert found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", ":2: not YAML"),
        ("- a\n", ":1: expected `name: value` lines"),
        ("order: ['*']\nlabels: {}\n", ":2: unknown key 'labels'; known: systems"),
        ("order: [a, b]\n", ":1: a name stands there twice, or '\\*' not once"),
        ("order: [a, a, '*']\n", ":1: a name stands there twice"),
        ("order: a\n", ":1: order: expected a list"),
        ("\nlms: 3\n", ":2: lms: expected `name: value` lines"),
        ("lms:\n  a: {}\n  b: text\n", ":3: 'lms.b' is 'text'; expected"),
        ("lms:\n  a: {color: red}\n", ":2: unknown setting 'lms.a.color'"),
        ("lms:\n  a: {label: [3]}\n", ":2: setting 'lms.a.label' is \\[3\\]"),
        ("lms:\n  a: {look: {light: red, dark: red}}\n", ":2: light: 'red' is no colour"),
        ("lms:\n  a: {look: {light: '#000000'}}\n", ":2: .*dark' is missing"),
        ("lms:\n  a: {look: {light: '#000000', dark: '#000000', line: x}}\n", ":2: line: 'x'"),
        (
            "lms:\n  a: {look: {light: '#000000', dark: '#000000', marker: xy}}\n",
            ":2: marker: 'xy'",
        ),
        ("views:\n  eos: {label: e, colour: x}\n", ":2: unknown setting 'views.eos.colour'"),
        ("spare: [{light: '#000000'}]\n", ":1: .*'dark' is missing"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(conf, text, message):
    with pytest.raises(UserError, match=f"^[^\n]*report.yaml{message}[^\n]*$"):
        load_style(conf(text))


def test_the_verb_takes_it(exp, tmp_path, conf, capsys, undrawn):
    home = shutil.copytree(exp.parent, tmp_path / "made-up") / "exp"
    path = conf("lms:\n  tta: {label: Our model}\n")
    assert main(["report", str(home), "--conf", str(path)]) == 0
    written = (home / "report/RESULTS.md").read_text()
    assert "Our model + n-gram" in written and "T-TA + n-gram" not in written
    assert f"lmtools report {home} --conf {path}" in written
    capsys.readouterr()
    conf("lms: 3\n")
    assert main(["report", str(home), "--conf", str(path)]) == 1
    assert capsys.readouterr().err.endswith(f"{path}:1: lms: expected `name: value` lines\n")


def test_the_verb_takes_an_experiment(exp, tmp_path, capsys, undrawn):
    home = shutil.copytree(exp.parent, tmp_path / "made-up") / "exp"
    path = tmp_path / "e.yaml"
    path.write_text(
        "columns: {tta: {}, ngram: {}}\n"
        "systems: {tta+ngram: {columns: [tta, ngram], label: both}, tta: [tta]}\n"
    )
    assert main(["report", str(home), "--experiment", str(path)]) == 0
    written = (home / "report/RESULTS.md").read_text()
    rows = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert rows[rows.index("oracle") + 1 :][:3] == ["both", "T-TA", "tuned without LM"]
    assert f"lmtools report {home} --experiment {path}" in written
    path.write_text("columns: {tta: {intakt: true}}\n")
    assert main(["report", str(home), "--experiment", str(path)]) == 1
    assert f"{path}:1: unknown option 'intakt'" in capsys.readouterr().err
