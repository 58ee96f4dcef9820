"""Language models of installed packages, found by name; no code of the package runs."""

import json
import shutil
from pathlib import Path
from shlex import split

import pytest
from toys import OBJECTIVE, TRANSFORMER, WORDS, sentences
from translators import random_translator

from lmtools import UserError, cli
from lmtools.base.specs import LMSpec, find_model, parse_mixture
from lmtools.cli import main
from lmtools.score import load


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a package with one model in an environment of its own."""

    def make(package: str, name: str = "en-x", model: Path | None = None) -> str:
        site = tmp_path / f"site-{package}"
        (site / package / "en_x").mkdir(parents=True)
        if model:
            shutil.copytree(model, site / package / "en_x", dirs_exist_ok=True)
        (site / package / "__init__.py").write_text("raise SystemExit('imported')\n")
        metadata = site / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        points = f"[lmtools.models]\n{name} = {package}.en_x\n"
        (metadata / "entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(str(site))
        return str(site / package / "en_x")

    monkeypatch.chdir(tmp_path)
    return make


def test_a_name_is_a_folder_of_a_package(install):
    folder = install("first")
    assert find_model("en-x") == folder
    assert LMSpec.parse("en-x,oov_penalty=7") == LMSpec(folder, oov_penalty=7.0)
    for other in ("en-y", "a/en-x", "hf:en-x", "en-x "):
        assert find_model(other) == other


def test_parts_of_a_mixture_have_names(install):
    folder = install("first")
    assert parse_mixture("mix:en-x=0.6,lm=0.4") == ([folder, "lm"], [0.6, 0.4])


def test_what_lies_here_comes_first(install, tmp_path):
    install("first")
    (tmp_path / "en-x").mkdir()
    assert find_model("en-x") == "en-x"


def test_a_name_of_two_packages_is_refused(install):
    folders = [install("first"), install("second")]
    with pytest.raises(UserError) as error:
        find_model("en-x")
    assert all(folder in str(error.value) for folder in folders)


BROKEN = {
    "name": ("-.dist-info", "METADATA", b""),
    "nameless": (
        "no_name-1.dist-info",
        "entry_points.txt",
        b"[lmtools.models]\nen-z = no_name.z\n",
    ),
    "bytes": ("bad-1.dist-info", "entry_points.txt", b"[lmtools.models]\n\xff = \xff\n"),
    "points": ("odd-1.dist-info", "entry_points.txt", b"en-x = odd\n[lmtools.models\n=\n"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_package_hides_no_other(install, how):
    site = Path(install("first")).parents[1]
    folder, name, content = BROKEN[how]
    (site / folder).mkdir()
    (site / folder / name).write_bytes(content)
    assert find_model("en-x") == str(site / "first" / "en_x")
    with pytest.raises(UserError, match=r"en-y: no such .*installed: .*en-x"):
        load("en-y")


def test_a_model_that_is_not_installed(install):
    with pytest.raises(UserError, match=r"en-y: no such .*none; docs/models.md says"):
        load("en-y")
    install("first")
    with pytest.raises(UserError, match=r"en-y: no such .*installed: en-x"):
        load("en-y")


VERBS = {
    "train": "train --conf conf.yaml --train TINY/train.bin --valid TINY/valid.bin --init LM",
    "embed": "embed --lm LM --text text",
    "embed-words": "embed --lm LM --pool words --text text",
    "ppl": "ppl --lm LM --text text",
    "score": "score --lm mix:LM=0.5,LM=0.5 --nbest n.jsonl",
    "prune": "ngram prune NGRAM --threshold 1e-8",
    "mix": "ngram mix NGRAM NGRAM --mix 0.5",
    "export": "export --lm NGRAM --to arpa",
    "doctor": "doctor --nbest n.jsonl --lm NGRAM",
    "translate": "translate --lm PAIRS --source text --beam 2",
}
OUT = {"embed": "--out v.npz", "embed-words": "--out v.npz", "ppl": "", "doctor": ""}


@pytest.fixture
def here(install, tiny, trained, tmp_path):
    """A directory with text, lists, a training's settings, and three installed models."""
    text = sentences(12, 3)
    Path("text").write_text("\n".join(text) + "\n")
    rows = [{"utt": f"u{i}", "ref": t, "hyps": [{"text": t}]} for i, t in enumerate(text)]
    Path("n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    conf = {"model": "causal", "objective": OBJECTIVE["causal"], "arch": TRANSFORMER, "epochs": 1}
    Path("conf.yaml").write_text(json.dumps(conf))
    assert main(split(f"ngram --text {tiny}/train.txt --order 2 --out ngram")) == 0
    models = {"en-lm": trained["causal"], "en-n": "ngram", "en-pairs": random_translator(tmp_path)}
    for name, model in models.items():
        install(name.replace("-", "_"), name, model)
    return tiny


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb in cli.VERBS])
def test_each_verb_takes_a_name(verb, here):
    command = VERBS[verb].replace("NGRAM", "en-n").replace("LM", "en-lm").replace("TINY", str(here))
    assert main(split(f"{command.replace('PAIRS', 'en-pairs')} {OUT.get(verb, '--out o')}")) == 0


def test_the_bridge_to_espnet_takes_a_name(here):
    bridge = pytest.importorskip("lmtools.bridges.espnet.__main__", exc_type=ImportError).main
    Path("tokens.txt").write_text("\n".join(["<blank>", "<unk>", *WORDS, "<sos/eos>"]))
    assert bridge(split("export --lm en-lm --token-list tokens.txt --out o")) == 0
