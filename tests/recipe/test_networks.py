"""egs/librispeech/studies/run_networks.sh from end to end, on a few lists of the mini corpus."""

import shlex
from itertools import islice

import pytest

from lmtools.cli import main
from lmtools.formats import edits, jsonl, kaldi_text
from lmtools.formats.lattices import LATTICES
from lmtools.networks.confusion import as_lattice
from lmtools.networks.files import NETWORKS


@pytest.fixture(scope="module")
def whole(librispeech):
    """The recipe after an uninterrupted run."""
    recipe = librispeech("networks")
    small = recipe.home / "small"
    text = f"ngram --text {small}/train.txt --order 2 --normaliser librispeech"
    assert main([*text.split(), "--out", str(recipe.home / "lm")]) == 0
    for part in ("dev", "test"):
        lists = islice(jsonl.read(small / f"{part}.nbest.jsonl"), 12)
        lists = [edits.cut_list(nbest, 5) for nbest in lists]
        (recipe.home / f"lists/native/{part}").mkdir(parents=True)
        jsonl.write(lists, recipe.home / f"lists/native/{part}/nbest.jsonl")
        refs = {nbest.utt: nbest.ref for nbest in lists}
        kaldi_text.write(refs, recipe.home / f"lists/native/{part}/text")
    command = f"network build --nbest {recipe.home}/lists/native/test/nbest.jsonl --scale 0.05"
    assert main([*command.split(), "--out", str(recipe.home / "n.json")]) == 0
    networks = NETWORKS.read(recipe.home / "n.json")
    LATTICES.write(map(as_lattice, networks), recipe.home / "n.plf", "plf")
    (recipe.home / "n.txt").write_text("".join(f"{network.ref}\n" for network in networks))
    options = "--lists-dir lists --cases native --lm lm --scales '0.02 0.1' --tune-opts ''"
    options += " --vosk lists/native/test --lattices n.plf --lattice-refs n.txt"
    recipe(*shlex.split(options), script="studies/run_networks.sh")
    return recipe


def test_every_result(whole):
    exp = whole.home / "exp/networks"
    results = {path.relative_to(exp).as_posix(): path for path in exp.glob("*/*/*.result")}
    assert {path for path in results if path.startswith("build")} == {
        f"build/native/{name}.result" for name in ("scales", "confidences")
    }
    assert {f"rover/native/{name}.result" for name in ("tuned", "freq", "share")} <= {*results}
    assert {"lattices/all/0.02.result", "lattices/all/0.1.result"} <= {*results}
    confidences = results["build/native/confidences.result"].read_text().splitlines()
    assert len(confidences) == 4 and all("NCE" in line for line in confidences)
    assert (exp / "build/native/confidences.png").exists()


def test_no_other_recogniser_and_no_lattices(whole):
    options = "--lists-dir lists --cases native --lm lm --vosk '' --expdir exp/less --stage 4"
    whole(*shlex.split(options), script="studies/run_networks.sh")
    assert not [*(whole.home / "exp/less").glob("*/*/*.result")]
