"""The examples that end the help of each verb do what they say, in a directory that has what they
name.
"""

import json
import os
import shlex
import shutil
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import fake_listener
import fake_recogniser
import numpy as np
import pytest
import soundfile
from lattices import random_lattice
from processes import Service
from toys import WORDS, sentences
from translators import random_translator
from writers import random_writer

from lmtools.cli import VERBS, main
from lmtools.decode import recognisers
from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.lattices import slf
from lmtools.transcribe import transcriber
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.parser import find_module

EXAMPLES = {verb: find_module(verb).EXAMPLES for verb in VERBS}
SERVED = EXAMPLES["serve"]
CONF = "{model: lstm, objective: causal, arch: {layers: 1, dim: 8, units: 8}, epochs: 1}"


def write_lists(name: str, seed: int) -> None:
    """Lists in which sometimes the first, sometimes the second hypothesis is the reference."""
    lists = []
    for place, ref in enumerate(sentences(40, seed)):
        wrong = Hypothesis(f"{ref} stone of", {"am": -1.0 - 0.1 * (place % 3)})
        hyps = wrong, Hypothesis(ref, {"am": -1.1})
        lists.append(NBest(f"u{place}", hyps[:: 1 if place % 2 else -1], ref))
    jsonl.write(lists, f"{name}.jsonl")
    kaldi_text.write({nbest.utt: nbest.ref for nbest in lists}, f"{name}.ref")
    Path("data", name).mkdir(parents=True)
    shutil.copy(f"{name}.jsonl", f"data/{name}/nbest.jsonl")


def run(line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0, line


def score_and_tune() -> None:
    """What a user has after the core verbs: scores, weights, texts, an experiment, parts."""
    for verb in ("score", "tune"):
        run(EXAMPLES[verb][0])
    score = "lmtools score --nbest test.jsonl --lm lm --out"
    for out in ("test.scores", "a.scores --shard 1/1", "b.scores --shard 1/1"):
        run(f"{score} {out}")
    for number in (1, 2):
        run(f"{score} test.scores --shard {number}/2")
    run("lmtools tune --nbest dev.jsonl --scores lm=dev.scores --out exp/tune/lm/weights.json")
    rescore = "lmtools rescore --nbest test.jsonl --scores lm=test.scores --weights weights.json"
    for out in ("t.txt", "exp/rescore/lm/test.txt", *(f"{name}.txt" for name in "abc")):
        run(f"{rescore} --out {out}")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with everything that the examples read."""
    home = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("LMTOOLS_KENLM", "none")
        for name, count in {"text": 300, "domain": 100, "dev": 40}.items():
            Path(f"{name}.txt").write_text("\n".join(sentences(count, count)) + "\n")
        write_lists("dev", 1)
        write_lists("test", 2)
        for name in ("whisper", "vosk"):
            shutil.copy("test.jsonl", f"{name}.jsonl")
        for text, out in (("text", "lm"), ("domain", "domain")):
            run(f"lmtools ngram --text {text}.txt --order 2 --out {out}")
        score_and_tune()
        Path("lstm.yaml").write_text(CONF)
        run(EXAMPLES["subword"][0])
        for name, text in (("train", "text"), ("valid", "dev")):
            run(f"lmtools corpus --text {text}.txt --subword bpe --out {name}.bin")
        run(EXAMPLES["train"][0])
        slf.write([random_lattice(1, words=WORDS)], "lattices.slf")
        Path("test.source").write_text("the king\nthe city came\n")
        Path("names.txt").write_text("Kings | king\n")
        shutil.copytree(random_translator(home / "made"), "translator")
        if find_spec("transformers"):
            random_writer(home / "gemma")
        rows = (
            f"{a} {b}\t{b} {WORDS[place]} the\t{3 * place % 5}"
            for place, (a, b) in enumerate(pairwise(WORDS))
        )
        Path("pairs.tsv").write_text("\n".join(rows) + "\n")
        for name in ("whisper-base", "tools/asr/whisper-base", "vosk-model-en", "recordings"):
            Path(name).mkdir(parents=True)
            Path(name, "model").write_text("the\n")
        Path("recordings/model").unlink()
        for path in ("a.wav", "recordings/b.wav"):
            soundfile.write(path, np.zeros(800), 16_000)
        kind = recognisers.RecogniserKind(
            fake_recogniser.FakeRecogniser, fake_recogniser.FakeOptions, ("soundfile",)
        )
        for name in ("whisper", "vosk"):
            patch.setitem(recognisers.RECOGNISERS, name, kind)
        patch.setattr(transcriber, "listen", fake_listener.listen)
        yield home


@pytest.mark.parametrize("verb", VERBS)
def test_there_are_two_of_each_verb(verb, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    *_, title, first, second = capsys.readouterr().out.splitlines()
    assert title == "examples:" and (first.strip(), second.strip()) == EXAMPLES[verb]
    assert all(line.split()[:2] == ["lmtools", verb] for line in EXAMPLES[verb])


@pytest.mark.parametrize(
    "line", [line for lines in EXAMPLES.values() for line in lines if line not in SERVED]
)
def test_an_example_works(home, line):
    if "hf:" in line:
        pytest.importorskip("transformers", reason="transformers is not installed")
    run(line)


@pytest.mark.parametrize("line", SERVED)
def test_the_servers_listen(home, line):
    with Service(
        *shlex.split(line)[1:],
        *("--set", "port=0"),
        program=("-c", fake_listener.SCRIPT),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as served:
        status, _, content = served.listen().ask("GET", "/health")
    assert (status, json.loads(content)) == (200, {"status": "ok"})
