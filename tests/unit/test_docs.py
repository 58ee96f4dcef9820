"""What the pages of the repository name exists: links, paths, verbs with their options, options of
recipes; and their prose is no wider than the code.
"""

import argparse
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from lmtools.cli import VERBS
from lmtools.verbs.options import Parser, add_common

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for pattern in ("*.md", "docs/*.md", "egs/*/README.md", "egs/*/*/*.md", "tests/*/*.md")
    for page in sorted(ROOT.glob(pattern))
    if page.name != "RESULTS.md" and "/exp/" not in str(page)
]
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# of other programs that the pages speak of
FOREIGN = set(
    OPTION.findall(
        """
    --token-list --list
    --nproc-per-node --extra-index-url --no-deps --number --additional-suffix --norm
    --lm_train_config --lm_file --lm_weight --asr_train_config --asr_model_file --output_dir
    --data_path_and_name_and_type --normalize --unnormalized --acoustic-scale --help --only
    --medium --skip_symbols
        """
    )
)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def split(page: Path) -> tuple[str, str]:
    """Prose and code blocks of a page."""
    parts = re.split(r"^```.*\n", page.read_text(), flags=re.MULTILINE)
    return "\n".join(parts[::2]), "\n".join(parts[1::2])


def commands(page: Path, program: str) -> list[str]:
    """The command lines of `program` in blocks and between backticks, without comments."""
    prose, code = split(page)
    lines = re.sub(r"\\\n", " ", code).splitlines()
    lines += re.findall(r"^    (\S.*)", prose, re.MULTILINE)
    lines += [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose)]
    found = [re.split(r"\s#|[;|>](?!\w)", line)[0] for line in lines]
    return [line.partition(program)[2] for line in found if program in line]


@cache
def options(*path: str) -> frozenset[str]:
    """The options of a verb, or of a verb's action."""
    parser = Parser(add_help=False)
    add_common(parser)
    importlib.import_module(f"lmtools.verbs.{path[0]}").arguments(parser)
    known = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and path[1:]:
            known |= set(action.choices[path[1]]._option_string_actions)
    return frozenset(known)


@cache
def of_recipe(recipe: str) -> frozenset[str]:
    """The options of a recipe's run.sh."""
    home = ROOT / "egs" / recipe
    scripts = ROOT / "utils/recipe.sh", home / "run.sh", home / "local/sampling.sh"
    text = "".join(script.read_text() for script in scripts if script.exists())
    names = re.findall(r"^([a-z][a-z0-9_]*)=.*", text, re.MULTILINE)
    return frozenset(f"--{name.replace('_', '-')}" for name in names)


def actions(verb: str) -> list[str]:
    """The actions of a verb, or none."""
    module = importlib.import_module(f"lmtools.verbs.{verb}")
    return [*getattr(module, "ACTIONS", getattr(module, "KINDS", ()))]


@cache
def anything() -> frozenset[str]:
    """Every option of a verb, a recipe, or a script of the repository."""
    known = set(FOREIGN)
    for verb in VERBS:
        known |= options(verb).union(*(options(verb, action) for action in actions(verb)))
    for recipe in (ROOT / "egs").glob("*/run.sh"):
        known |= of_recipe(recipe.parent.name)
    for script in (*ROOT.glob("benchmarks/*"), *ROOT.glob("egs/*/local/*"), *ROOT.glob("utils/*")):
        if script.suffix in (".py", ".sh"):
            known |= set(OPTION.findall(script.read_text()))
    return frozenset(known)


@pages
def test_verbs_and_their_options(page):
    for command in commands(page, "lmtools "):
        words = command.split()
        if words and words[0] in VERBS:
            path = words[: 1 + (words[1:2] != [] and words[1] in actions(words[0]))]
            assert set(OPTION.findall(command)) <= options(*path) | {"--help"}, (path, command)


@pages
def test_options_of_recipes(page):
    for command in commands(page, "run.sh "):
        home = page.parent.name if page.parent.parent.name == "egs" else "librispeech"
        before = [line for line in page.read_text().splitlines() if command.strip() in line]
        named = re.search(r"egs/(\w+)/run\.sh", before[0] if before else "")
        recipe = named[1] if named and (ROOT / "egs" / named[1]).is_dir() else home
        wrong = set(OPTION.findall(command)) - of_recipe(recipe) - {"--help"}
        assert not wrong - anything() if recipe == "librispeech" else not wrong, (recipe, command)


@pages
def test_every_option_is_one_of_something(page):
    unknown = set(OPTION.findall(page.read_text())) - anything()
    assert not unknown


@pages
def test_links_and_paths_exist(page):
    prose, _ = split(page)
    for target, _, anchor in (
        one.partition("#") for one in re.findall(r"\]\((?!http)([^)\s]+)\)", prose)
    ):
        goal = page.parent / target if target else page
        assert goal.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)", goal.read_text(), re.MULTILINE)
            known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in titles}
            assert anchor in known, anchor
    homes = [ROOT, ROOT / "lmtools", page.parent, page.parents[1], *ROOT.glob("egs/*")]
    for path in re.findall(r"(?<![\w/.$*])(?:\.\./)*(?:\w[\w.-]*/)+[\w.*-]*", prose):
        first = path.strip("./").split("/")[0]
        mine = {
            "lmtools",
            "tests",
            "utils",
            "egs",
            "conf",
            "benchmarks",
            "docs",
            "local",
            "figures",
        }
        if path.endswith((".py", ".sh")) or first in mine:
            found = any(next(home.glob(path.rstrip(".")), None) for home in homes)
            assert found or re.search("NAME|/exp/|dstc2|mine", path), path


@pages
def test_prose_is_no_wider_than_code(page):
    prose, _ = split(page)
    wide = [line for line in prose.splitlines() if len(line) > 100]
    assert not [line for line in wide if not line.startswith(("|", "<img", "![", "    "))]
