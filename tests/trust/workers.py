"""Workers, their parent or both are killed: one line and status 1 within seconds, and nothing of
them lives on.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import split

from trust.common import Case, Started, Wrong, drawn, lmtools, patience, sound
from trust.world import take, write_lists

SECONDS = 20.0  # in which a verb that lost a worker has to say so
LINGER = 15.0  # in which what is left of a killed verb has to end


def long_texts(count: int, seed: int) -> list[str]:
    """So many distinct texts of about 20 words: verbs start workers only for much work."""
    from toys import WORDS

    rng = drawn("texts", seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(14, 26))) for _ in range(count)]


def score(home: Path) -> list[str]:
    """Scoring with two workers."""
    take(home, "lm/causal")
    texts = long_texts(12000, 1)
    write_lists(
        [
            {"utt": f"u{n}", "hyps": [{"text": text} for text in texts[n : n + 10]]}
            for n in range(0, len(texts), 10)
        ],
        home / "many.jsonl",
    )
    words = "score --lm lm/causal --nbest many.jsonl --nj 2 --rows 64"
    return split(f"{words} --cache none --device cpu --out s")


def ppl(home: Path) -> list[str]:
    """A perplexity with two workers."""
    take(home, "lm/causal")
    (home / "t").write_text("\n".join(long_texts(12000, 3)) + "\n")
    words = "ppl --lm lm/causal --text t --nj 2 --rows 64"
    return split(f"{words} --cache none --device cpu --out p.json")


def lattices(home: Path) -> list[str]:
    """Rescoring of lattices with two workers."""
    from lattices import random_lattice
    from toys import WORDS
    from trust.world import lattice_of

    from lmtools.formats.lattices import LATTICES

    take(home, "lm/causal")
    rng = drawn("lattices")
    LATTICES["slf"].write(
        [lattice_of(random_lattice(rng, 12, 30, WORDS, 0.0), f"u{n}") for n in range(400)],
        home / "lat",
    )
    words = "lattice rescore lat --lm c=lm/causal --weights am=1,lm=1,c=1 --nj 2"
    return split(f"{words} --device cpu --nbest-out o.jsonl")


def text(home: Path) -> None:
    """Text of many blocks."""
    from toys import sentences

    block = "\n".join(sentences(4000, 3)) + "\n"
    (home / "t").write_text(block * 300)


def corpus(home: Path) -> list[str]:
    """A corpus made by two workers."""
    take(home, "bpe")
    text(home)
    return split("corpus --text t --subword bpe --nj 2 --out o.bin")


def subword(home: Path) -> list[str]:
    """Words counted by two workers."""
    text(home)
    return split("subword --text t --type word --normaliser librispeech --nj 2 --out o")


VERBS = {"score": score, "lattices": lattices, "corpus": corpus, "subword": subword, "ppl": ppl}
WHOM = ("worker", "parent", "both", "all-workers")


def kill(home: Path, verb: str, whom: str, draw: int, seed: int) -> None:
    """Start the verb, kill some of its processes at a random moment once workers are there, look at
    what it says and what lives.
    """
    args = VERBS[verb](home)
    rng = drawn("workers", verb, whom, draw, seed)
    started = Started(lmtools(*args), home)
    try:
        if not started.until(lambda: len(started.workers()) >= 2):
            raise Wrong(
                "lost", f"{verb} ended before it had two workers: {started.done().err[-300:]}"
            )
        time.sleep(rng.choice((0.0, rng.uniform(0, 1), rng.uniform(1, 5))))
        workers = started.workers()
        if started.process.poll() is not None:
            return  # it was faster than the attack
        victims = {
            "worker": rng.sample(workers, min(1, len(workers))),
            "parent": [started.process.pid],
            "all-workers": workers,
        }
        victims["both"] = victims["worker"] + victims["parent"]
        for pid in victims[whom]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if whom in ("worker", "all-workers"):
            done = started.done(patience(SECONDS))
            if done.status == 0 and "worker" in whom and not (started.process.poll() == 0):
                raise done.wrong("wrong status")
            if done.status != 0:  # 0: the work was over, or another worker did it
                sound(done)
        else:
            started.process.wait(patience(10))
        if alive := started.survivors(LINGER):
            raise Wrong(
                "survivors",
                f"{verb}, {whom} killed: {len(alive)} processes live after {LINGER} s:"
                f" {sorted(alive.values())[0][:200]}",
            )
    finally:
        started.end()


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each verb and victim; in the short campaign a worker of one verb and the parent of
    another.
    """
    for verb in VERBS:
        for whom in WHOM:
            for draw in range({"short": 1, "medium": 1, "long": 6}[size]):
                if size != "short" or (verb, whom) in (("score", "worker"), ("subword", "parent")):
                    yield Case(
                        f"{verb}-{whom}-{draw}",
                        lambda home, v=verb, w=whom, d=draw: kill(home, v, w, d, seed),
                    )
