"""Lattices rescored behind the utterances before them, against all paths scored as pairs."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from lattices import random_lattice
from lattices import sentences as of_lattice
from scoring import CPU
from unit.score.test_context import KINDS, LINES, lms  # noqa: F401  a fixture

from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.formats.lattices import write
from lmtools.lattice.paths import best
from lmtools.score import load, score_texts
from lmtools.score.context import ContextScorer, History
from lmtools.score.lattice_run import LatticeContext, LatticeOutputs, run_sessions
from lmtools.score.lattices import LatticeOptions
from lmtools.types import Arc, Final, Lattice

VOCABULARY = sorted({word for line in LINES[:20] for word in line.split()})[:5]
UTTS = ("a-1", "a-2", "a-3", "b-1", "b-2")
WEIGHTS = {"am": 2.0, "lm": 0.5, "new": 3.0, "words": -0.25}
TEXT = LatticeOutputs(text=True, lattice=True)


@pytest.fixture(scope="module")
def lattices():
    return [
        replace(random_lattice(seed, words=VOCABULARY, epsilons=0.1), utt=utt)
        for seed, utt in enumerate(UTTS, 3)
    ]


def options(lm, **more) -> LatticeOptions:
    return LatticeOptions({"new": LMSpec(lm)}, WEIGHTS, computing=CPU, **more)


def line(utt: str, text: str) -> Lattice:
    """A lattice of one path."""
    words = text.split()
    arcs = [Arc(n, n + 1, word, {"am": 0.0, "lm": 0.0}) for n, word in enumerate(words)]
    return Lattice.of(utt, len(words) + 1, 0, arcs, [Final(len(words))])


@pytest.mark.parametrize("kind", [*KINDS, "ngram"])
def test_one_path_has_the_score_of_its_words_behind_those_before(lms, kind):  # noqa: F811
    texts = LINES[:4]
    lines = [line(f"a-{number}", text) for number, text in enumerate(texts)]
    found = list(run_sessions(lines, options(lms[kind]), TEXT, LatticeContext(7)))
    scorer = ContextScorer(load(LMSpec(lms[kind]), CPU))
    history, pairs = History(scorer, 7), []
    for text in texts:
        pairs.append((history.context(), text))
        history.add(text)
    assert pairs[2][0]
    wanted = score_texts(pairs, scorer, CPU).log_prob
    for one, value in zip(found, wanted, strict=True):
        total = one.lattice.scores["new"].sum() + one.lattice.final_scores["new"].sum()
        assert total == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("kind", ["causal", "lstm", "ngram"])
@pytest.mark.parametrize("origin", ["first", "rescored", "ref"])
def test_best_paths_are_those_of_brute_force(lms, lattices, kind, origin):  # noqa: F811
    scorer = ContextScorer(load(LMSpec(lms[kind]), CPU))
    context = LatticeContext(5, origin, refs=dict(zip(UTTS, LINES[30:], strict=False)))
    found = list(run_sessions(lattices, options(lms[kind], order=None), TEXT, context))
    history = None
    for lattice, one in zip(lattices, found, strict=True):
        if history is None or lattice.utt == "b-1":
            history = History(scorer, 5)
        known = {name: weight for name, weight in WEIGHTS.items() if name != "new"}
        paths = of_lattice(lattice, known)
        pairs = [(history.context(), " ".join(words)) for words in paths]
        new = score_texts(pairs, scorer, CPU).log_prob
        totals = [old + 3.0 * value for old, value in zip(paths.values(), new, strict=True)]
        rescored = of_lattice(one.lattice, WEIGHTS)
        assert rescored == pytest.approx(dict(zip(paths, totals, strict=True)), rel=1e-4, abs=1e-3)
        first = " ".join(best(lattice, {"am": 1.0, "lm": 1.0}).words)
        history.add({"rescored": one.text, "first": first, "ref": context.refs[one.utt]}[origin])


def test_both_origins_and_no_context_differ(lms, lattices):  # noqa: F811
    def scores(context):
        run = run_sessions(lattices, options(lms["causal"]), TEXT, context)
        return [one.lattice.scores["new"].sum() for one in run]

    found = [scores(LatticeContext(5, origin)) for origin in ("first", "rescored")]
    assert found[0][0] == found[1][0] and found[0] != found[1]


def test_sessions_in_parallel_and_by_time(lms, lattices, tmp_path):  # noqa: F811
    context = LatticeContext(5, "rescored")
    alone = list(run_sessions(lattices, options(lms["causal"]), TEXT, context))
    apart = list(run_sessions(lattices, options(lms["causal"]), TEXT, context, nj=2))
    assert [one.text for one in alone] == [one.text for one in apart]
    assert [one.lattice.scores["new"].tolist() for one in alone] == [
        one.lattice.scores["new"].tolist() for one in apart
    ]
    segments = tmp_path / "segments"
    segments.write_text("".join(f"{utt} call {9 - n} {9.5 - n}\n" for n, utt in enumerate(UTTS)))
    turned = LatticeContext(5, "rescored", str(segments))
    found = list(run_sessions(lattices, options(lms["causal"]), TEXT, turned))
    assert [one.utt for one in found] == list(UTTS)
    ids = tmp_path / "utt2spk"
    ids.write_text("".join(f"{utt} call\n" for utt in UTTS))
    again = LatticeContext(5, "rescored", str(ids))
    backwards = run_sessions(lattices[::-1], options(lms["causal"]), TEXT, again)
    assert [one.text for one in backwards] == [one.text for one in found[::-1]]


def test_signatures_name_the_context(lms, lattices):  # noqa: F811
    one = next(run_sessions(lattices, options(lms["ngram"]), TEXT, LatticeContext(5, "rescored")))
    assert one.signatures["new"]["context"] == "5 tokens"
    assert one.signatures["new"]["context_from"] == "rescored"


def test_an_utterance_without_its_reference_is_refused(lms, lattices, tmp_path, capsys):  # noqa: F811
    write([replace(lattice, times=None) for lattice in lattices], tmp_path / "in", "slf")
    (tmp_path / "ref").write_text("a-1 the\n")
    command = rescore_command(lms["ngram"], tmp_path / "in", "--text-out", str(tmp_path / "out"))
    command[command.index("rescored")] = "ref"
    assert main([*command, "--ref", str(tmp_path / "ref")]) == 1
    assert "a-2: has no reference" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_session_in_two_parts_is_refused(lms, lattices):  # noqa: F811
    mixed = [lattices[0], lattices[3], lattices[1]]
    with pytest.raises(UserError, match="a-2: its session 'a' has lattices farther up"):
        list(run_sessions(mixed, options(lms["ngram"]), TEXT, LatticeContext(5)))


def rescore_command(lm, where, *more) -> list[str]:
    return [
        *("lattice", "rescore", str(where), "--lm", f"new={lm}"),
        *("--weights", "am=2,lm=0.5,new=3,words=-0.25", "--context", "5"),
        *("--context-from", "rescored", "--device", "cpu", *more),
    ]


def test_killed_and_run_again_gives_the_same_bytes(lms, lattices, tmp_path):  # noqa: F811
    """A killed run leaves no output; the same command then writes what an unbroken one does."""
    many = [
        replace(lattice, utt=f"s{turn:02}-{number}", times=None)
        for turn in range(40)
        for number, lattice in enumerate(lattices)
    ]
    write(many, tmp_path / "in", "slf")
    whole, again = tmp_path / "whole.txt", tmp_path / "again.txt"
    command = rescore_command(lms["causal"], tmp_path / "in", "--text-out")
    assert main([*command, str(whole)]) == 0
    call = [sys.executable, "-m", "lmtools", *command, str(again)]
    running = subprocess.Popen(call, stderr=subprocess.DEVNULL, start_new_session=True)
    limit = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < limit:
        if list(tmp_path.glob("again.txt*")) or list(tmp_path.glob(".again.txt*")):
            break  # it writes
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert not again.exists()
    assert main([*command, str(again)]) == 0
    assert again.read_bytes() == whole.read_bytes()
    assert len(whole.read_text().splitlines()) == len(many)


def test_lists_of_rescored_lattices_say_their_context(lms, lattices, tmp_path):  # noqa: F811
    plain = [replace(lattice, times=None) for lattice in lattices]
    write(plain, tmp_path / "in", "slf")
    out = tmp_path / "out.jsonl"
    command = rescore_command(lms["causal"], tmp_path / "in", "--nbest-out", str(out))
    assert main(command) == 0
    assert Path(out).read_text().count("5 tokens") == len(plain)
