"""What the pages of the repository name exists: links, paths, verbs with their options, options of
recipes; and their prose is no wider than the code.
"""

import argparse
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from bench import build_parser

import lmtools
from lmtools.cli import VERBS
from lmtools.rescoring.experiment import SystemEntry
from lmtools.rescoring.risk import Risk
from lmtools.verbs.experiment import load_experiment
from lmtools.verbs.options import COLUMN
from lmtools.verbs.parser import find_module, make_parser

ROOT = Path(__file__).parents[2]
GLOBS = ("*.md", "docs/*.md", "egs/*/*.md", "egs/*/*/*.md", "egs/*/*/mini/*.md", "tests/*/*.md")
PAGES = [page for pattern in GLOBS for page in sorted(ROOT.glob(pattern))]
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
FOREIGN = """of other programs: --nnodes --rdzv-backend --rdzv-id --rdzv-endpoint --nodes
    --ntasks-per-node --gpus-per-node --requeue --open-mode
    --token-list --list --nproc-per-node --extra-index-url --no-deps --norm --lm_train_config
    --lm_file --lm_weight --asr_train_config --help --asr_model_file --output_dir
    --data_path_and_name_and_type --normalize --unnormalized --only --acoustic-scale --medium
    --skip_symbols --output_nbest --result --nbest-size --output-type --output_format
    --output-json --no-spm-decode --rm --gpus --build-arg --sshlogin --workdir --partition
    --local-dir"""
HOMES = {"lmtools", "tests", "utils", "egs", "conf", "benchmarks", "docs", "local", "figures"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def split(page: Path) -> tuple[str, str]:
    """Prose and code blocks of a page."""
    parts = re.split(r"^```.*\n", page.read_text(), flags=re.MULTILINE)
    return "\n".join(parts[::2]), "\n".join(parts[1::2])


def commands(page: Path) -> list[list[str]]:
    """The words after `lmtools` of each command in blocks and between backticks."""
    prose, code = split(page)
    lines = re.sub(
        r"\\\n", " ", code + re.sub(r"^    ", "", prose, flags=re.MULTILINE)
    ).splitlines()
    lines += [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose)]
    plain = [re.split(r"\s#|[;|>`](?!\w)", line)[0] for line in lines]
    return [line.partition("lmtools ")[2].split() for line in plain if "lmtools " in line]


@cache
def actions(verb: str) -> tuple[str, ...]:
    module = find_module(verb)
    return tuple(getattr(module, "ACTIONS", getattr(module, "KINDS", ())))


@cache
def options(verb: str, action: str = "") -> frozenset[str]:
    parser = make_parser(verb)
    known = set(parser._option_string_actions)
    for part in parser._actions:
        if action and isinstance(part, argparse._SubParsersAction):
            known |= set(part.choices[action]._option_string_actions)
    return frozenset(known)


@cache
def anything() -> frozenset[str]:
    """Every option of a verb, a recipe, or a script of the repository."""
    known = set(OPTION.findall(FOREIGN))
    for verb in VERBS:
        known |= options(verb).union(*(options(verb, action) for action in actions(verb)))
    for part in build_parser()._subparsers._group_actions:
        known |= {name for kind in part.choices.values() for name in kind._option_string_actions}
    places = (
        "egs/*/*.sh",
        "egs/*/studies/**/*",
        "egs/*/tasks/**/*",
        "egs/*/local/*",
        "egs/*/make_mini/*",
    )
    for pattern in (*places, "benchmarks/*", "utils/**/*", "tests/trust/*"):
        for script in (path for path in ROOT.glob(pattern) if path.suffix in (".py", ".sh")):
            text = script.read_text()
            names = re.findall(r"^([a-z][a-z0-9_]*)=", text, re.MULTILINE)  # a recipe's options
            known |= {f"--{name.replace('_', '-')}" for name in names} | set(OPTION.findall(text))
    return frozenset(known)


@pages
def test_options_exist(page):
    for verb, *words in commands(page):
        if verb in VERBS:
            path = (verb, *(word for word in words[:1] if word in actions(verb)))
            assert set(OPTION.findall(" ".join(words))) <= options(*path), (path, words)
    current = page.read_text().partition("\n### Removed\n")[0]  # of CHANGES.md: what is there today
    unknown = set(OPTION.findall(current)) - anything()
    assert not unknown


@pages
def test_links_and_paths_exist(page):
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", page.read_text()):
        target, _, anchor = link.partition("#")
        goal = page.parent / target if target else page
        assert goal.exists(), link
        titles = re.findall(r"^#+ (.*)", goal.read_text(), re.MULTILINE) if anchor else []
        known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in titles}
        assert not anchor or anchor in known, link
    homes = [ROOT, ROOT / "lmtools", page.parent, page.parents[1], *ROOT.glob("egs/*")]
    for path in re.findall(r"(?<![\w/.$*])(?:\.\./)*(?:\w[\w.-]*/)+[\w.*-]*", page.read_text()):
        if path.endswith((".py", ".sh")) or path.strip("./").split("/")[0] in HOMES:
            found = any(next(home.glob(path.rstrip(".")), None) for home in homes)
            assert found or re.search("NAME|/exp/|dstc2|mine", path), path


def test_architecture_names_what_is_there():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    files = {path.name for path in (ROOT / "lmtools").rglob("*.py")}
    files |= {f"{path.name}/" for path in (ROOT / "lmtools").rglob("*") if path.is_dir()}
    rooms = page.partition("## The rooms of `lmtools/`")[2].partition("## Adding")[0]
    assert set(re.findall(r"`(\w+(?:\.py|/))`", rooms)) <= files
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", rooms))
    inside = [path for path in (ROOT / "lmtools").glob("[a-z]*") if path.name != "py.typed"]
    top = {path.name + "/" * path.is_dir() for path in inside}
    assert top <= named
    kinds = re.findall(r"^\|[^|]*\|([^|]*)\| \[", page.partition("## Adding")[2], re.MULTILINE)
    code = "".join(path.read_text() for path in (ROOT / "lmtools").rglob("*.py"))
    for name in re.findall(r"`([A-Z]+)`", "".join(kinds)):
        assert re.search(rf"^{name}\b.* = ", code, re.MULTILINE), name


def blocks(page: str) -> list[str]:
    """The YAML files that a page shows."""
    return re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_yaml_of_pages_is_read(tmp_path):
    for name, text in zip(("experiment", "refined"), blocks("docs/recipes.md"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(text)
    plan = load_experiment(str(tmp_path / "refined.yaml"))
    assert plan.plans["best"].columns == ("tta", "ngram", "mbr")
    assert plan.plans["tta-intact+ngram"].columns == ("tta-intact", "ngram")


def test_the_page_names_every_key_of_an_experiment():
    page = (ROOT / "docs/recipes.md").read_text().partition("| entry | meaning |")[2]
    for keys in (COLUMN, Risk.__dataclass_fields__, SystemEntry.__dataclass_fields__):
        for name in (key.strip("-").replace("-", "_") for key in keys):
            assert f"`{name}`" in page, name


@pages
def test_prose_is_no_wider_than_code(page):
    for line in split(page)[0].splitlines():
        assert len(line) <= 100 or line.startswith(("|", "<img", "![", "    ")), line


CELL = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")


def tables(text: str) -> list[list[str]]:
    """The rows of each Markdown table, the rule under its headers second."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"(?:^[^\n]*\|[^\n]*\n)+", prose + "\n", re.MULTILINE)
    rows = [[row.strip() for row in block.splitlines()] for block in blocks]
    return [one for one in rows if len(one) > 1 and RULE.fullmatch(one[1])]


@pages
def test_rows_of_tables_have_a_cell_for_each_header(page):
    for header, *rows in tables(page.read_text()):
        wrong = [row for row in rows if len(CELL.findall(row)) != len(CELL.findall(header))]
        assert not wrong, wrong[0]


def test_claims_of_papers_have_a_status():
    rows = [
        (header, row)
        for page in ROOT.glob("egs/*/RESULTS.md")
        for header, _, *body in tables(page.read_text())
        if header.startswith("| claim |")
        for row in body
    ]
    assert len(rows) > 40
    for header, row in rows:
        assert header.endswith("| status |"), header
        status = row.rstrip(" |").rpartition("| ")[2]
        assert re.match(r"\*\*(holds|reversed|undecided|open)\*\*", status), row


# what a later measurement or test took back; it may stand on no page
WITHDRAWN = """removes 11 to 13% of
4.99 [4.38
6 to 13 times the speed
nothing else was searched
kind WER follows perplexity
Bible text WER follows perplexity
No model has read these texts
an LM measures no more than common words
only their steps were timed
44.9M words of books that it estimates
BCE-IS's +0.33 is significant
give the same WER within the confidence interval
is the only system significantly below the 4-gram
T-TA is level with uniLM** on all
T-TA is better than biLM of equal text and passes
does not** on this GPU
makes the table except the rows of Gemma
(5.18, p 0.02), the 4-gram is not
""".splitlines()


@pages
def test_nothing_withdrawn_stands(page):
    text = " ".join(page.read_text().split())
    assert not [words for words in WITHDRAWN if words in text]


def test_tables_are_found():
    text = "a|b\n\ntext\n\n| a | b |\n|---|:-:|\n| 1 | x\\|y | z |\n\n```\n| a |\n|---|\n| |\n```\n"
    ((header, rule, row),) = tables(text)
    assert [len(CELL.findall(one)) for one in (header, rule, row)] == [3, 3, 4]


def test_the_site_has_a_way_to_every_page():
    """From docs/index.md, or from the page above; the sidebar shows at most 18."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    below = importlib.import_module("pages").BELOW
    index = ROOT / "docs/index.md"
    trees = re.findall(r"```{toctree}\n(.*?)```", index.read_text(), re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    names = [re.sub(r".*<(.*)>", r"\1", line).removesuffix(".md") for line in lines]
    first = [f"docs/{name}" for name in names]
    more = [f"{Path(above).parent}/{name}" for above, names in below.items() for name in names]
    reached = {(ROOT / f"{name}.md").resolve() for name in (*first, *more)}
    assert reached | {index} == {page for page in PAGES if page.name != "new_recipe.md"}
    assert len(first) <= 18


def test_the_reference_has_every_public_name():
    page = (ROOT / "docs/api.md").read_text()
    table = "".join(line for line in page.splitlines() if line.startswith("|"))
    assert {*re.findall(r"`(?:lmtools\.)?(\w+)`", table)} == {*lmtools.__all__}


def test_no_name_that_others_may_take():
    """Neither the package nor its models are on PyPI: what is installed is named by its place."""
    wrong = re.compile(r"pip install[^\n]*[ '\"]lmtools(\[|-models-en(?![\w.-]))")
    places = [
        ROOT.rglob("*.md"),
        *((ROOT / home).rglob("*.py") for home in ("egs", "lmtools", "utils")),
    ]
    for path in (path for place in places for path in place if path.name != "CHANGES.md"):
        if not {".venv", "tools", "build"} & set(path.relative_to(ROOT).parts):
            assert not wrong.search(path.read_text()), path
