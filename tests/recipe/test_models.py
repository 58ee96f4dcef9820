"""egs/librispeech/studies/run_models.sh from end to end on little text: the models of the wheel are
found by name, and nothing but models is in it. run_models_small.sh with a small model of Sphinx.
"""

import lzma
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lmtools.base.files import sha256
from lmtools.ngram.kenlm_files import SCRIPT, find_program

PLACE = find_program()
REAL = Path(__file__).parents[2] / "egs/librispeech/mini-real"
pytestmark = pytest.mark.skipif(PLACE is None, reason=f"no build_binary; {SCRIPT} makes it")
TINY = ("--vocab-size", "60", "--valid", "20", "--judged", "", "--threshold", "1e-5")
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
    (recipe.home / "books/a.txt").write_text("the man sat\n" * 20 + f"\n{lines}")
    recipe.env["LMTOOLS_KENLM"] = str(PLACE.parent)
    recipe("--text-dir", "books", *TINY, "--train-opts", OPTS, script="studies/run_models.sh")
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
        "--text-dir",
        "books",
        *TINY,
        "--train-opts",
        OPTS,
        "--stage",
        4,
        script="studies/run_models.sh",
    )
    assert model.stat().st_mtime_ns == before and f"{wheel.name}:" in done.stdout


# written by sphinx_lm_convert of sphinxbase 5prealpha, of a model whose trigram `blue finch sings`
# has no bigram `finch sings`: Sphinx adds it, with the least probability that its tables have
SPHINX = lzma.decompress((Path(__file__).parent / "tiny.lm.bin.xz").read_bytes())
ARPA = """\
\\data\\
ngram 1=6
ngram 2=5
ngram 3=2

\\1-grams:
-99.0000	<s>	-0.5000
-1.2000	</s>	0.0000
-0.8000	blue	-0.3000
-0.9000	finch	-0.2500
-1.1000	sings	-0.2000
-1.5000	it's	-0.1000

\\2-grams:
-0.7000	sings </s>	0.0000
-0.2000	<s> blue	-0.1500
-0.4000	it's blue	-0.3500
-0.3000	blue finch	-0.0500
-0.7000	finch sings	0.0000

\\3-grams:
-0.1000	<s> blue finch
-0.1500	blue finch sings

\\end\\
"""


@pytest.fixture
def convert(recipe, tmp_path):
    """A function that converts bytes of Sphinx's form: what it wrote and what it said."""

    def run(content: bytes) -> tuple[str | None, str]:
        source, out = tmp_path / "lm.bin", tmp_path / "lm.arpa"
        source.write_bytes(content)
        script = recipe.home.parents[1] / "utils/sphinx_to_arpa.py"
        done = subprocess.run([sys.executable, script, source, out], capture_output=True, text=True)
        assert done.returncode == (not out.exists())
        return out.read_text() if out.exists() else None, done.stderr

    return run


def test_a_model_of_sphinx_becomes_arpa(convert):
    assert convert(SPHINX) == (ARPA, "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ARPA.encode(), "no language model in CMU Sphinx's binary form"),
        (SPHINX[:1000], "ends too early; fetch it again"),
        (SPHINX[:-3], "ends too early; fetch it again"),
    ],
)
def test_what_is_no_model_of_sphinx_is_refused(convert, content, said):
    out, error = convert(content)
    assert out is None and error.endswith(f"lm.bin: {said}\n") and error.count("\n") == 1


def test_the_small_model_is_packed_under_its_name(librispeech):
    recipe = librispeech("models-small")
    (recipe.home / "mini-real").symlink_to(REAL)
    recipe.env["LMTOOLS_KENLM"] = str(PLACE.parent)
    data = recipe.home / "data/models-small"
    data.mkdir(parents=True)
    (data / "en-us.arpa").write_text(ARPA)
    done = recipe("--stage", 2, script="studies/run_models_small.sh")
    assert done.stdout.count("WER ") >= 2
    (wheel,) = (recipe.home / "exp/models-small/dist").glob("lmtools_models_small-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert b"en-small" in archive.read(points)
