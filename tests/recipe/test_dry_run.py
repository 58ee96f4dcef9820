"""Every script of a recipe keeps the rules by which a reader predicts its commands, and --dry-run
prints what one can paste.
"""

from pathlib import Path

import pytest
from shell_scripts import LINES, OPTIONS, Script, count_scripts, find_scripts, find_stage_faults

ROOT = Path(__file__).parents[2]
# lines of what scripts stand on
BASE = {"utils/recipe.sh": 210, "utils/each.sh": 80, "utils/recipe.py": 300, "utils/rescore.sh": 40}
SCRIPT = """#!/usr/bin/env bash
# A recipe.

# shellcheck disable=SC2086  # train_opts are words
cd "$(dirname "$0")" && . ../../utils/recipe.sh

lms="a b"   # LMs
train_opts= # settings
options "$@"

if stage 3 "train" data/text conf \\
  : $expdir/lm/{a,b}; then
  for lm in $lms; do
    echo --conf conf/$lm.yaml --out $expdir/lm/$lm $train_opts
  done | each lmtools train
  [[ $train_opts ]] || submit python3 local/x.py --out "$expdir/{lm}.txt"
fi
"""


@pytest.mark.parametrize("path", find_scripts(ROOT), ids=lambda path: str(path.relative_to(ROOT)))
def test_rules(path):
    assert not list(Script(path).find_faults())


def test_lines_of_what_scripts_stand_on():
    counts = count_scripts(ROOT)
    assert all(counts[name][0] <= most for name, most in BASE.items())


@pytest.fixture
def script(tmp_path):
    """A function that makes a script of SCRIPT with one text in place of another."""

    def make(old: str, new: str) -> Script:
        assert old in SCRIPT
        path = tmp_path / "run.sh"
        path.write_text(SCRIPT.replace(old, new))
        return Script(path)

    return make


def test_what_a_script_is(script):
    made = script("A recipe", "Ours")
    assert made.options == ["lms", "train_opts"] and list(made.stages) == [3]
    assert not list(made.find_faults())


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("# A recipe.", "# A recipe." + "\n#" * LINES, "lines; at most"),
        ("lms=", "".join(f"x{n}=\n" for n in range(OPTIONS)) + "lms=", "options; at most"),
        ('options "$@', 'declare -A how=()\noptions "$@', "associative array"),
        ('options "$@', 'local -n how=x\noptions "$@', "nameref"),
        ('options "$@', 'read -ra words <<<$x\noptions "$@', "read"),
        ('options "$@', 'eval $lms\noptions "$@', "eval"),
        ('options "$@', 'recipe_script=$0\noptions "$@', "a line recipe_script="),
        ("disable=SC2086 ", "disable=SC2086,SC2034 ", "shellcheck disable=SC2086,SC2034"),
        ("disable=SC2086  # train_opts are words", "disable=SC2086", "shellcheck disable=SC2086"),
        ("lms=", "# shellcheck disable=SC2086  # x\nlms=", "2 directives of shellcheck"),
        ("{lm}", "{columns}", "{columns}, which no verb replaces"),
        ("$lm $train_opts\n", "$lm\n for x in 1; do\n rm x\n done\n", "stage 3: a `for` inside"),
        ("python3 local", "local", "stage 3: the command local/x.py"),
        ("submit python3", "submit ./x && lmtools", "stage 3: the command ./x"),
        ('.txt"', '.txt" >log', "stage 3: redirection"),
        ("-out $expdir", "-out $(pwd)", "stage 3: $(command)"),
        ("each lmtools train", "awk 1", "stage 3: the command awk 1"),
        ("each lmtools train", "each lmtools train <<<x", "stage 3: here document"),
    ],
)
def test_faults(script, old, new, fault):
    assert any(fault in found for found in script(old, new).find_faults())


@pytest.mark.parametrize(
    "block",
    [
        "mkdir -p $x/y\n",
        "name=${file##*/} x+=1\n{\n  cp a b\n}\n",
        "if [[ $x > 2 ]]; then\n  cp a b\nelse\n  ln -s a b\nfi\n",
        "((x > 1)) || rm -f a\n",
        'lmtools rescore --out "x/{system}; y | z"\n',
    ],
)
def test_what_a_stage_may_have(block):
    assert not list(find_stage_faults(block))
