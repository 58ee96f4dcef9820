"""utils/new_recipe.sh: a copy of a recipe that runs at once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LMS = [f"conf/{name}.yaml" for name in ("causal", "masked", "tta")]
FILES = {  # what a copy has beside run.sh, README.md, conf/experiment.yaml and conf/report.yaml
    "librispeech": {*LMS, "local/get_data.py"},
    "gbw": {f"conf/{lm}.yaml" for lm in ("lstm", "gcnn", "elmo", "esulmo")} | {"local/prepare.py"},
    "stsb": {*LMS, *(f"local/{n}.py" for n in ("prepare_pairs", "prepare_lists", "word_vectors"))},
    "wmt13": {*LMS, "local/prepare.py", "local/metrics.py"},
}


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(REPOSITORY / "utils", tmp_path / "utils")
    (tmp_path / "egs").mkdir()
    for path in ("lmtools", "conf", *(f"egs/{name}" for name in FILES)):
        (tmp_path / path).symlink_to(REPOSITORY / path)
    return tmp_path


def new_recipe(tree, *args, status=0) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [tree / "utils/new_recipe.sh", *args], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("source", FILES)
def test_a_copy_has_what_it_needs_and_runs_at_once(tree, source, shell, make_recipe):
    """So does a copy of it; each has its name on reports and its page."""
    assert "egs/one/README.md" in new_recipe(tree, source, "egs/one").stdout
    home = tree / "egs/one"
    common = {"run.sh", "README.md", "conf/experiment.yaml", "conf/report.yaml"}
    made = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert made == FILES[source] | common
    assert (home.stat().st_mode & 0o777, (home / "run.sh").stat().st_mode & 0o111) == (0o755, 0o111)
    text = (home / "run.sh").read_text().replace("\\\n", "")
    (line,) = (line for line in text.splitlines() if " lmtools report " in line)
    assert line.partition(" --title ")[2].startswith('"${PWD##*/}')
    page = (home / "README.md").read_text()
    assert page.startswith(f"# one\n\nCopied from egs/{source}.") and "@" not in page
    assert "stage 1 done" in make_recipe(home, shell)("--stop-stage", 1).stdout
    new_recipe(tree, "one", "two")
    make_recipe(tree / "egs/two", shell)("--stop-stage", 0)
    page = (tree / "egs/two/README.md").read_text()
    assert page.startswith("# two\n\nCopied from egs/one.") and "egs/two/run.sh" in page


@pytest.mark.parametrize(
    "args, message, status",
    [
        (["librispeech"], "usage: utils/new_recipe.sh SOURCE NEW", 2),
        (
            ["librispeach", "new"],
            "egs/librispeach: no run.sh there; recipes are: gbw/ librispeech/",
            1,
        ),
        (["librispeech", "librispeech"], "egs/librispeech: exists already", 1),
        (["librispeech", "New"], "'New' cannot be a recipe's name", 1),
        (["librispeech", "../new"], "'../new' cannot be a recipe's name", 1),
        (["librispeech", "a/b"], "'a/b' cannot be a recipe's name", 1),
        (["librispeech", ""], "'' cannot be a recipe's name", 1),
        (["", "new"], "egs/: no run.sh there", 1),
    ],
)
def test_refusals(tree, args, message, status):
    before = os.listdir(tree / "egs")
    done = new_recipe(tree, *args, status=status)
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(tree / "egs") == before
