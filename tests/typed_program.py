"""A program that uses every public name, for `mypy --strict` (make lint): what it may pass and what
it gets back. It is never run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import assert_type

import lmtools
from lmtools import Arc, Final, Hypothesis, Lattice, NBest, lattice

FILE = Path("lists.jsonl")


def lists() -> list[NBest]:
    hyp = Hypothesis("they came", {"am": -1.0})
    assert_type(hyp.display, str)
    assert_type(NBest("u", (hyp,), ref="they came"), NBest)
    assert_type(lmtools.stream(FILE), Iterator[NBest])
    assert_type(lmtools.read("lists.jsonl", form="jsonl"), list[NBest])
    found = lmtools.read(FILE)
    lmtools.write(found, FILE, "jsonl")
    return found


def lattices() -> list[Lattice]:
    assert_type(lmtools.stream(FILE, Lattice), Iterator[Lattice])
    found = lmtools.read(FILE, Lattice)
    assert_type(found, list[Lattice])
    lmtools.write(found, FILE, "slf")
    one = found[0]
    assert_type(one.arcs(), list[Arc])
    assert_type(one.ends(), list[Final])
    path = lattice.best(one, {"am": 1.0})
    print(path.words, lattice.as_nbest(one, [path]), lattice.trim(one), lattice.problems(one))
    print(lattice.nbest(one, {"am": 1.0}, 5), lattice.prune(one, {"am": 1.0}, 8.0))
    print(lattice.posteriors(one, {"am": 1.0}), lattice.add_posteriors(one, {"am": 1.0}))
    print(lattice.repair(one), lattice.statistics([one]))
    print(lattice.oracle(one, ["they", "came"]))
    return found


def scores() -> lmtools.ScoreTable:
    lm = lmtools.load("lm", device="cpu", intact=True)
    assert_type(lm, lmtools.LM)
    assert_type(lm.score(["they came"]), np.ndarray[tuple[Any, ...], np.dtype[Any]])
    token = lm.token_scores(["they came"])[0]
    assert_type(token, lmtools.TokenScores)
    assert_type(token.by_word(), np.ndarray[tuple[Any, ...], np.dtype[Any]])
    weights = lmtools.Weights.load("weights.json")
    assert_type(lm.rescore(lists()[0], weights), NBest)
    assert_type(lm.rescore(lists(), "default:whisper"), list[NBest])
    return lm.score_lists(lists())


def weights() -> lmtools.Weights:
    tuned = lmtools.tune(lists(), {"lm": scores(), "file": FILE}, metric="wer", folds=5)
    tuned.save(FILE)
    assert_type(lmtools.rescore(lists(), tuned, {"lm": scores()}), list[NBest])
    return tuned


def harms() -> lmtools.Harm:
    harm = lmtools.measure_harm(["a"], FILE)
    print(harm.changed, harm.sentences, harm.bound())
    return harm


def recordings() -> lmtools.Transcript:
    transcriber = lmtools.Transcriber(lm=["en-small"], weights="default:whisper")
    print(lmtools.listen("whisper:whisper-base", device="cpu").score(["a"], np.zeros(16_000)))
    made = transcriber.transcribe("talk.m4a", language="en", progress=print)
    assert_type(made, lmtools.Transcript)
    print([(word.word, word.start, word.changed) for word in made.words])
    print(made.text, made.fallback, made.write("srt"))
    return made


def measures() -> tuple[float, float] | None:
    for measured in (lmtools.wer(lists()), lmtools.cer(lists()), lmtools.bleu(["a"], ["a"])):
        assert_type(measured, lmtools.Evaluation)
        print(measured.score, measured.signature)
    return lmtools.measure({"u": "a"}, {"u": "b"}, "ter").interval()


def settings() -> None:
    try:
        with lmtools.using(max_line="64M", allow_commands=False):
            lists()
    except lmtools.UserError as error:
        print(error)
