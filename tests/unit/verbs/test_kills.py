"""Verbs whose processes are killed: one line, status 1, within seconds, and nobody left; what was
computed stays in the cache.
"""

import contextlib
import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lattices import random_lattice
from processes import PATIENCE, descendants, gone, workers_of
from scoring import ask
from toys import WORDS, sentences

from lmtools.formats import jsonl
from lmtools.formats.lattices import slf
from lmtools.score import load
from lmtools.score.cache import Segment
from lmtools.score.texts import open_cache
from lmtools.types import Hypothesis, NBest

ROOT = Path(__file__).parents[3]
# the verbs as they are, but that little work is worth a process and a block of text is small
SCRIPT = (
    "import sys; from lmtools.text import blocks; blocks.SIZE = 300; {}; from lmtools.cli import"
    " main; sys.exit(main(sys.argv[1:]))"
)
SCORING = "from lmtools.score import texts; texts.WORTH_A_FORK = 1"
VERBS = {
    "score": (
        "score --lm {lm}/masked --nbest n.jsonl --out {out} --cache {out}.cache --rows 1 --nj 2"
    ),
    "rescore": (
        "lattice rescore lattices --lm new={lm}/causal --weights am=1,new=1 --max-ngram-order 0"
        " --out {out} --nj 2"
    ),
    "corpus": "corpus --text text --subword {lm}/../sw --out {out} --nj 2",
    "subword": "subword --text text --type word --out {out} --nj 2",
}

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """More work than a minute holds."""
    home = tmp_path_factory.mktemp("kills")
    lines = sentences(20_000, 1, 12)
    (home / "text").write_text("\n".join(lines * 160) + "\n")
    jsonl.write(
        [NBest(f"u{i}", (Hypothesis(line),)) for i, line in enumerate(lines)], home / "n.jsonl"
    )
    lattice = random_lattice(3, words=WORDS[:4])
    slf.write(
        (dataclasses.replace(lattice, utt=f"u{n}") for n in range(3000)), str(home / "lattices")
    )
    return home


class Verb:
    """A running verb with two workers."""

    def __init__(self, name: str, home: Path, lm: Path):
        script = SCRIPT.format(SCORING if name == "score" else "pass")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.out = home / f"out-{next(NUMBERS)}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *VERBS[name].format(lm=lm, out=self.out).split()],
            text=True, cwd=home, env=environment, start_new_session=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self):
        until = time.monotonic() + 6 * PATIENCE
        while (
            len(workers_of(self.process.pid)) < 2
            and time.monotonic() < until
            and self.process.poll() is None
        ):
            time.sleep(0.02)
        assert len(workers_of(self.process.pid)) == 2, self.process.communicate()
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


# as soon as the workers are there, and when they have their models
@pytest.mark.parametrize("pause", [0.0, 2.0])
@pytest.mark.parametrize("name", VERBS)
def test_a_worker_is_killed(home, trained, name, pause):
    with Verb(name, home, trained["masked"].parent) as verb:
        time.sleep(pause)
        everybody, victim = descendants(verb.process.pid), workers_of(verb.process.pid)[1]
        assert verb.process.poll() is None and len(workers_of(verb.process.pid)) == 2, (
            "it ended before"
        )
        os.kill(victim, signal.SIGKILL)
        _, said = verb.process.communicate(timeout=PATIENCE)
        assert verb.process.returncode == 1 and gone(everybody, 5)
        cause = (
            f"worker process {victim} was killed by SIGKILL (9), perhaps for want of memory; give"
            " fewer processes (a lower --nj)"
        )
        assert f": {cause}" in said and said.count("\n") == 1 and not verb.out.exists()


@pytest.mark.parametrize("killed", ["worker", "parent", "both", "interrupted"])
def test_what_was_computed_stays_in_the_cache(home, trained, tmp_path, killed):
    """Of a run that ends early up to a second's; all are a plain run's scores."""
    with Verb("score", home, trained["masked"].parent) as verb:
        place = Path(f"{verb.out}.cache")  # of its own: what others computed leaves nothing to do
        until = time.monotonic() + 3 * PATIENCE
        while rows(place) < 20 and time.monotonic() < until:
            time.sleep(0.1)
        there = rows(place)
        everybody = descendants(verb.process.pid)
        victim = workers_of(verb.process.pid)[0]
        if killed == "interrupted":
            os.killpg(verb.process.pid, signal.SIGINT)
        if killed in ("worker", "both"):
            os.kill(victim, signal.SIGKILL)
        if killed in ("parent", "both"):
            os.kill(verb.process.pid, signal.SIGKILL)
        verb.process.communicate(timeout=PATIENCE)
        assert gone(everybody, 5) and 20 <= there <= rows(place)
    options = ask(str(trained["masked"]), cache=str(place), rows=1)
    scorer = load(*options)
    sentences = list(
        dict.fromkeys(
            scorer.prepare([nbest.hyps[0].text for nbest in jsonl.read(home / "n.jsonl")])
        )
    )
    with contextlib.closing(open_cache(scorer, options.computing)) as cache:
        known = cache.get(sentences)
    assert len(known) == rows(place)
    for i in list(known)[:: 1 + len(known) // 50]:
        assert known[i] == pytest.approx(scorer.log_probs([sentences[i]])[0].sum(), abs=1e-4)


def rows(place: Path) -> int:
    """How many scores a cache holds."""
    keys = set()
    for path in place.rglob("*.segment"):
        with contextlib.suppress(OSError):
            keys.update(Segment(path).firsts.tolist())
    return len(keys)


@pytest.mark.parametrize("pause", [0.0, 2.0])
@pytest.mark.parametrize("name", ["score", "corpus"])
def test_the_parent_is_killed(home, trained, name, pause):
    with Verb(name, home, trained["masked"].parent) as verb:
        time.sleep(pause)
        everybody = descendants(verb.process.pid)
        os.kill(verb.process.pid, signal.SIGKILL)
        assert gone(everybody, 5)


@pytest.mark.parametrize("pause", [0.0, 2.0])
@pytest.mark.parametrize("name", ["score", "corpus"])
def test_an_interrupt_is_silent(home, trained, name, pause):
    with Verb(name, home, trained["masked"].parent) as verb:
        time.sleep(pause)
        everybody = descendants(verb.process.pid)
        os.killpg(verb.process.pid, signal.SIGINT)
        printed = verb.process.communicate(timeout=PATIENCE)
        assert (
            verb.process.returncode == 130
            and printed == ("", "")
            and gone(everybody, 5)
            and not verb.out.exists()
        )
