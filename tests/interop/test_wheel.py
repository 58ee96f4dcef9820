"""A wheel, built from the sdist and installed elsewhere, runs every verb: nothing reaches into the
repository. Without the extras it tunes, rescores, evaluates and converts, and says what brings the
rest.
"""

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from lmtools.base.errors import EXTRAS

ROOT = Path(__file__).parent.parent.parent
LISTS = """\
{"utt": "a", "ref": "the cat sat", "hyps": [{"text": "the cat sad", "scores": {"am": -1.0}}, \
{"text": "the cat sat", "scores": {"am": -1.5}}]}
{"utt": "b", "ref": "a dog ran", "hyps": [{"text": "a dock ran", "scores": {"am": -2.0}}, \
{"text": "a dog ran", "scores": {"am": -2.5}}]}
"""


@pytest.fixture(scope="module")
def lmtools(tmp_path_factory):
    """A function that runs a verb of the wheel in an environment of its own; its output."""
    home = tmp_path_factory.mktemp("wheel")
    source = home / "source"  # so that the build writes nothing into the repository
    shutil.copytree(ROOT / "lmtools", source / "lmtools")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    pack = f"from setuptools import build_meta; build_meta.build_sdist({str(home)!r})"
    subprocess.run([sys.executable, "-c", pack], cwd=source, capture_output=True, check=True)
    shutil.rmtree(source)
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", home, *home.glob("*.gz")]
    subprocess.run(built, check=True)
    venv.create(home / "env", with_pip=False)
    python = home / "env/bin/python"
    installed = [*pip, "--python", python, "install", "--no-deps", *home.glob("*.whl")]
    subprocess.run(installed, check=True)
    site = next((home / "env/lib").glob("python*/site-packages"))
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "others.pth").write_text("\n".join(others) + "\n")
    empty = home / "empty"
    empty.mkdir()

    def run(line: str, status: int = 0, path: str = "", program: str = "lmtools") -> str:
        settings = {"HOME": str(home), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
        result = subprocess.run(
            [home / "env/bin" / program, *line.split()],
            env=settings | {"PYTHONPATH": path},
            cwd=empty,
            capture_output=True,
            text=True,
        )
        assert result.returncode == status, result.stderr
        return result.stdout + result.stderr

    where = [python, "-c", "import lmtools; print(lmtools.__file__)"]
    found = subprocess.run(where, cwd=empty, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(home / "env"))
    run.home = empty
    return run


def test_an_environment_with_pypis_kenlm_keeps_it(lmtools):
    """ufal-kenlm has the same module: what needs it by all means would write over kenlm's."""
    (site,) = (lmtools.home.parent / "env/lib").glob("python*/site-packages")
    (metadata,) = site.glob("lmtools-*.dist-info/METADATA")
    needed = re.findall(r"^Requires-Dist: (.*)", metadata.read_text(), re.MULTILINE)
    assert {line for line in needed if "kenlm" in line} == {'ufal-kenlm>=26; extra == "ngram"'}


TRAINING = """\
model: causal
objective: causal
arch: {layers: 1, dim: 8, heads: 2, ffn: 16, positions: 16}
epochs: 1
"""


@pytest.fixture(scope="module")
def models(lmtools):
    """Directories of an n-gram and of a neural model that the wheel made."""
    (lmtools.home / "text").write_text("the cat sat\na dog ran\nthe dog sat\n" * 20)
    (lmtools.home / "conf.yaml").write_text(TRAINING)
    lmtools("ngram --text text --order 2 --out exp/lm/ngram")
    lmtools("subword --text text --type word --vocab-size 50 --out words")
    lmtools("corpus --text text --subword words --out text.bin")
    lmtools("train --conf conf.yaml --train text.bin --valid text.bin --out exp/lm/causal")
    return "exp/lm/ngram", "exp/lm/causal"


def test_lists_are_scored_tuned_rescored_and_reported(lmtools, models):
    weights = "exp/tune/ngram/weights.json"
    for name in ("dev", "test"):
        lists, scores = f"data/{name}/nbest.jsonl", f"exp/score/ngram/{name}.scores"
        (lmtools.home / lists).parent.mkdir(parents=True)
        (lmtools.home / lists).write_text(LISTS.replace('"a"', f'"{name}"'))
        lmtools(f"score --lm {models[0]} --nbest {lists} --out {scores}")
        what = f"--nbest {lists} --scores ngram={scores}"
        if name == "dev":
            lmtools(f"tune {what} --metric wer --out {weights}")
        lmtools(f"rescore {what} --weights {weights} --out exp/rescore/ngram/{name}.txt")
    chosen = (lmtools.home / "exp/rescore/ngram/test.txt").read_text()
    assert chosen == "test the cat sat\nb a dog ran\n"
    assert "n-gram" in lmtools("report exp")
    assert (lmtools.home / "exp/report/index.html").stat().st_size > 10_000


def tell_remedy(home: Path, extra: str) -> str:
    """Return the command that brings an extra to the Python of the wheel at `home`."""
    (wheel,) = home.parent.glob("*.whl")
    return f"{home.parent}/env/bin/python -m pip install '{wheel}[{extra}]'"


BEYOND = {"torch": "neural", "safetensors": "neural", "transformers": "hf", "h11": "serve"}

HIDING = """\
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {names} else find(name, *more)
class Hiding:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hiding)
"""


@pytest.fixture(scope="module")
def base(lmtools, tmp_path_factory):
    """The same where what the extras bring cannot be imported."""
    path = tmp_path_factory.mktemp("hidden")
    (path / "sitecustomize.py").write_text(HIDING.format(names=[*BEYOND]))

    def run(line: str, status: int = 0, **program) -> str:
        return lmtools(line, status, str(path), **program)

    run.home = lmtools.home
    return run


def test_the_base_install_needs_no_extra(base, lmtools):
    (lmtools.home / "base.jsonl").write_text(LISTS)
    base("convert base.jsonl copy.jsonl")
    base("tune --nbest copy.jsonl --metric wer --out base.json")
    base("rescore --nbest copy.jsonl --weights base.json --out base.txt")
    assert "WER" in base("evaluate --ref copy.jsonl --hyp base.txt --metric wer")
    assert "copy.jsonl" in base("doctor --nbest copy.jsonl")
    (lmtools.home / "base.text").write_text("the cat sat\na dog ran\n" * 20)
    base("ngram --text base.text --order 2 --out base-lm")
    base("score --nbest copy.jsonl --lm base-lm --out base.scores")
    base("tune --nbest copy.jsonl --scores lm=base.scores --metric wer --out with-lm.json")
    what = "--nbest copy.jsonl --scores lm=base.scores --weights with-lm.json"
    base(f"rescore {what} --out with-lm.txt")
    assert (lmtools.home / "with-lm.txt").read_text() == "a the cat sat\nb a dog ran\n"
    base("ppl --text base.text --lm base-lm")


def test_a_neural_model_says_what_brings_it(base, models):
    """As a command and in Python."""
    (base.home / "neural.jsonl").write_text(LISTS)
    message = f"{models[1]}: needs the package torch; {tell_remedy(base.home, 'neural')}\n"
    said = base(f"score --nbest neural.jsonl --lm {models[1]} --out neural.scores", 1)
    assert said == f"lmtools score: {message}"
    program = base.home / "program.py"
    program.write_text(
        f"import lmtools\nassert lmtools.load({models[0]!r}, threads=1).score(['the cat']) < 0\n"
        f"try: lmtools.load({models[1]!r})\nexcept lmtools.UserError as error: print(error)"
    )
    assert base(str(program), program="python") == message


LINES = {
    "train --conf c.yaml --train t --valid t --out o": "this needs the package torch",
    "embed --lm lm --text base.text --out o.npz": "this needs the package torch",
    "translate --lm lm --source base.text --out o.jsonl": "this needs the package torch",
    "export --lm lm --to hf --out o": "--to hf: needs the package transformers",
    "score --nbest copy.jsonl --lm hf:lm --out o": "hf:lm: needs the package transformers",
    "serve --lm lm=base-lm --weights base.json": "this needs the package h11",
}


@pytest.mark.parametrize("line", LINES)
def test_a_verb_beyond_the_base_says_what_brings_it(base, line):
    (base.home / "lm").mkdir(exist_ok=True)
    extra = BEYOND[LINES[line].split()[-1]]
    told = f"lmtools {line.split()[0]}: {LINES[line]}; {tell_remedy(base.home, extra)}"
    assert base(line, 1).removesuffix(", or use --nbest -\n").rstrip("\n") == told


def test_extras_bring_what_messages_name(lmtools):
    """Every package of `EXTRAS` is one that its extra asks for."""
    (site,) = (lmtools.home.parent / "env/lib").glob("python*/site-packages")
    (metadata,) = site.glob("lmtools-*.dist-info/METADATA")
    needed = re.findall(r"^Requires-Dist: ([\w-]+).*extra == \"(\w+)\"", metadata.read_text(), re.M)
    names = {"kenlm": "ufal-kenlm", "llama_cpp": "llama-cpp-python"}
    names["faster_whisper"] = "faster-whisper"
    assert {(names.get(module, module), extra) for module, extra in EXTRAS.items()} <= {*needed}
