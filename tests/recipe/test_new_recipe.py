"""utils/new_recipe.sh: a copy of a recipe that runs at once."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path):
    """A repository with one recipe on a corpus of two sentences."""
    source = REPOSITORY / "egs/librispeech"
    home = tmp_path / "egs/librispeech"
    shutil.copytree(REPOSITORY / "utils", tmp_path / "utils")
    (tmp_path / "lmtools").symlink_to(REPOSITORY / "lmtools")
    for part in ("conf", "local", "studies"):
        shutil.copytree(source / part, home / part)
    shutil.copy(source / "run.sh", home)
    for made in ("make_mini/make_mini.sh", "exp/x", "data/x", "mini/README.md"):
        (home / made).parent.mkdir(exist_ok=True)
        (home / made).touch()
    for part in ("train", "valid"):
        (home / f"mini/{part}.txt").write_text("A FINCH SINGS\n")
    for part in ("dev", "test"):
        lists = {
            "utt": f"{part}-1",
            "ref": "A FINCH",
            "hyps": [{"text": "A FINS"}, {"text": "A FINCH"}],
        }
        (home / f"mini/{part}.nbest.jsonl").write_text(json.dumps(lists) + "\n")
    return tmp_path


def new_recipe(tree, *args, status=0) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [tree / "utils/new_recipe.sh", *args], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_copy_runs_at_once(tree, shell, make_recipe):
    assert "egs/my-corpus/README.md" in new_recipe(tree, "librispeech", "egs/my-corpus").stdout
    home = tree / "egs/my-corpus"
    assert {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} == {
        *("README.md", "run.sh", "local/get_data.py"),
        *(f"conf/{name}.yaml" for name in ("causal", "masked", "tta", "experiment", "report")),
    }
    assert (home / "mini").is_symlink()
    assert (home.stat().st_mode & 0o777, (home / "run.sh").stat().st_mode & 0o111) == (0o755, 0o111)
    done = make_recipe(home, shell)("--stop-stage", 1)
    assert "stage 1 done" in done.stdout
    assert (home / "data/train/text").read_text() == "A FINCH SINGS\n"


@pytest.mark.parametrize("source", ["librispeech", "gbw", "stsb", "wmt13"])
def test_a_copy_has_its_name_on_reports_and_its_page(tree, source):
    if source != "librispeech":
        for part in ("conf", "local"):
            shutil.copytree(REPOSITORY / "egs" / source / part, tree / "egs" / source / part)
        shutil.copy(REPOSITORY / "egs" / source / "run.sh", tree / "egs" / source)
    new_recipe(tree, source, "mine")
    text = (tree / "egs/mine/run.sh").read_text().replace("\\\n", "")
    (line,) = (line for line in text.splitlines() if " lmtools report " in line)
    assert line.partition(" --title ")[2].startswith('"${PWD##*/}')
    assert " --conf conf/report.yaml " in line and (tree / "egs/mine/conf/report.yaml").exists()
    page = (tree / "egs/mine/README.md").read_text()
    assert page.startswith(f"# mine\n\nCopied from egs/{source}.") and "@" not in page


def test_copy_of_a_copy_runs_too(tree, shell, make_recipe):
    new_recipe(tree, "egs/librispeech/", "one")
    new_recipe(tree, "one", "two")
    make_recipe(tree / "egs/two", shell)("--stop-stage", 0)
    assert "Copied from egs/one." in (tree / "egs/two/README.md").read_text()


@pytest.mark.parametrize(
    "args, message, status",
    [
        (["librispeech"], "usage: utils/new_recipe.sh SOURCE NEW", 2),
        (["librispeach", "new"], "egs/librispeach: no run.sh there; recipes are: librispeech/", 1),
        (["librispeech", "librispeech"], "egs/librispeech: exists already", 1),
        (["librispeech", "New"], "'New' cannot be a recipe's name", 1),
        (["librispeech", "../new"], "'../new' cannot be a recipe's name", 1),
        (["librispeech", "a/b"], "'a/b' cannot be a recipe's name", 1),
        (["librispeech", ""], "'' cannot be a recipe's name", 1),
        (["", "new"], "egs/: no run.sh there", 1),
    ],
)
def test_refusals(tree, args, message, status):
    before = sorted(tree.rglob("*"))
    done = new_recipe(tree, *args, status=status)
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert sorted(tree.rglob("*")) == before
