"""egs/librispeech/run_models.sh from end to end on little text: the models of the wheel are found
by name, and nothing but models is in it.
"""

import re
import subprocess
import sys
import zipfile

import pytest

from lmtools.base.files import sha256
from lmtools.ngram.kenlm import SCRIPT, find_program

pytestmark = pytest.mark.skipif(
    find_program() is None, reason=f"no build_binary; {SCRIPT} makes it"
)
TINY = ("--vocab-size", "60", "--valid", "20", "--leave-out", "", "--threshold", "1e-5")
OPTS = "epochs=1 arch.layers=1 arch.dim=16 arch.heads=2 arch.ffn=32 batch.tokens=256"
MODELS = {"en-books-4gram": "small", "en-books-unilm": "causal", "en-books-tta": "tta"}
# an n-gram needs no torch, and what is not installed is said in one line
PROGRAM = """\
import sys
sys.modules["torch"] = None
import lmtools
print(lmtools.load("en-books-4gram").score(["the man sat"]))
try: lmtools.load("en-books-5gram")
except lmtools.UserError as error: print(error)
"""


@pytest.fixture(scope="module")
def recipe(librispeech):
    """The recipe after a run on one book."""
    recipe = librispeech("models")
    lines = (recipe.home / "small/train.txt").read_text().lower()
    (recipe.home / "books").mkdir()
    (recipe.home / "books/a.txt").write_text(lines)
    recipe("--text-dir", "books", *TINY, "--train-opts", OPTS, script="run_models.sh")
    return recipe


@pytest.fixture(scope="module")
def wheel(recipe):
    (wheel,) = (recipe.home / "exp/models/dist").glob("lmtools_models_en-*-py3-none-any.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(recipe, wheel, tmp_path_factory):
    """A function that runs a program of Python where the wheel is installed."""
    site, away = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("away")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel]
    subprocess.run(pip, check=True)

    def run(*arguments) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=recipe.env | {"PYTHONPATH": str(site)},
            cwd=away,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("name", MODELS)
def test_a_name_scores_as_the_directory_does(recipe, installed, name):
    text, lm = recipe.home / "data/models/valid.txt", recipe.home / "exp/models/lm" / MODELS[name]
    figures = [installed("-m", "lmtools", "ppl", "--text", text, "--lm", x) for x in (name, lm)]
    assert figures[0] == figures[1] and "20 sentences" in figures[0]


def test_the_4gram_needs_no_torch(installed):
    score, error = installed("-c", PROGRAM).splitlines()
    assert re.fullmatch(r"\[-\d+\.\d+\]", score)
    assert error.endswith(f"(installed: {', '.join(sorted(MODELS))})")


def test_the_wheel_has_models_and_a_card(recipe, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        card = archive.read(metadata).decode()
        code = {name: archive.read(name).decode() for name in names if name.endswith(".py")}
    assert code == {"lmtools_models_en/__init__.py": '"""Language models; no code."""\n'}
    assert not [name for name in names if re.search(r"checkpoint|\.arpa|lock", name)]
    weights = recipe.home / "exp/models/lm/small/lm.bin"
    for path in (recipe.home / "books/a.txt", weights):
        assert sha256(path) in card
    rows = re.findall(r"^\| (en-books-\S+) \| (.*?) \| ([\d,]+) \|", card, re.MULTILINE)
    assert {name for name, *_ in rows} == {*MODELS} and ("en-books-tta", "T-TA") in {
        row[:2] for row in rows
    }


def test_what_is_trained_is_not_trained_again(recipe, wheel):
    model = recipe.home / "exp/models/lm/causal/model.safetensors"
    before = model.stat().st_mtime_ns
    done = recipe(
        "--text-dir", "books", *TINY, "--train-opts", OPTS, "--stage", 4, script="run_models.sh"
    )
    assert model.stat().st_mtime_ns == before and f"{wheel.name}:" in done.stdout
