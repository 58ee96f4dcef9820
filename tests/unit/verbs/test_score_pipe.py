"""Programs in a pipe: the result of an utterance is there before the next one is sent."""

import io
import os
import subprocess
import sys
from shlex import split

import pytest
from processes import Running
from toys import sentences

from lmtools.cli import main
from lmtools.formats import jsonl, scores
from lmtools.ngram import build
from lmtools.text import Normaliser
from lmtools.types import Hypothesis, NBest

LISTS = [NBest(f"u-{i}", tuple(map(Hypothesis, sentences(3, i)))) for i in range(3)]
ENTRY = "{} \n0\t1\t1\t0.5,1,\n0\t1\t2\t0.25,1.5,\n1\t0.125,0,\n\n"


@pytest.fixture(scope="module")
def lm(tiny, tmp_path_factory):
    home = tmp_path_factory.mktemp("pipe")
    build([tiny / "train.txt"], 2, home / "lm", Normaliser(), kenlm="none")
    (home / "words.txt").write_text("<eps> 0\nking 1\nqueen 2\n")
    jsonl.write(LISTS, home / "n.jsonl")
    return home


class Pipe(Running):
    """A running lmtools whose standard input and output are ours."""

    def __init__(self, *words):
        super().__init__(*words, text=True)

    def send(self, text: str) -> None:
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def lines(self, count: int) -> list[str]:
        """The next lines of output; fewer where it ends, or after the time that patience lasts."""
        return [
            line.rstrip("\n")
            for line in (self.process.stdout.readline() for _ in range(count))
            if line
        ]

    def rest(self) -> tuple[int, str, str]:
        """Status, output and errors after the input ends."""
        out, err = self.process.communicate()
        return self.process.returncode, out, err


def score(lm, nbest: str, out: str, *more) -> int:
    """Score lists by the n-gram; the exit status."""
    words = f"score --lm {lm}/lm --nbest {nbest} --out {out} --cache none"
    return main([*split(words), *more])


def expected(lm, capsys) -> dict[str, list[float]]:
    """The scores of LISTS by a run from file to file."""
    assert score(lm, f"{lm}/n.jsonl", f"{lm}/f.scores") == 0
    capsys.readouterr()
    return {utt: list(values) for utt, values in scores.read(f"{lm}/f.scores").log_prob.items()}


def test_score_answers_each_list(lm, capsys):
    wanted = expected(lm, capsys)
    rows = (lm / "n.jsonl").read_text().splitlines(keepends=True)
    found = {}
    with Pipe("score", "--lm", f"{lm}/lm", "--nbest", "-", "--out", "-", "--cache", "none") as pipe:
        for nbest, row in zip(LISTS, rows, strict=True):
            pipe.send(row)
            if not found:
                assert pipe.lines(1)[0].startswith("#")
            answer = [line.split("\t") for line in pipe.lines(3)]
            assert [key for key, *_ in answer] == [f"{nbest.utt}#{rank}" for rank in (1, 2, 3)]
            found[nbest.utt] = [float(value) for _, value, _ in answer]
        status, out, err = pipe.rest()
    assert (
        (status, out) == (0, (lm / "f.scores").read_text().splitlines(keepends=True)[-1])
        and err.startswith("-: 9 hypotheses of 3 utterances, ")
        and found == wanted
    )


def test_score_in_a_pipe_of_kaldi_tables(lm, capsys):
    """An utterance ends where the next begins: its costs are there one line later."""
    wanted = expected(lm, capsys)
    lines = [
        [f"{nbest.utt}-{n} {hyp.text}\n" for n, hyp in enumerate(nbest.hyps, 1)] for nbest in LISTS
    ]
    with Pipe(
        "score", "--lm", f"{lm}/lm", "--nbest", "ark:-", "--out", "ark,t:-", "--cache", "none"
    ) as pipe:
        pipe.send("".join(lines[0]) + lines[1][0])
        answer = pipe.lines(3)
        pipe.send("".join(lines[1][1:] + lines[2]))
        status, out, _ = pipe.rest()
    assert len(answer) == 3 and status == 0
    found = dict(line.split() for line in [*answer, *out.splitlines()])
    costs = {
        f"{utt}-{n}": -value for utt, values in wanted.items() for n, value in enumerate(values, 1)
    }
    assert list(found) == list(costs) and {
        key: float(cost) for key, cost in found.items()
    } == pytest.approx(costs, rel=1e-6)


def test_rescoring_lattices_in_a_pipe(lm):
    options = (
        "--lm",
        f"new={lm}/lm",
        *split("--weights am=1,graph=1,new=2 --format"),
        f"kaldi:words={lm}/words.txt",
    )
    entries = []
    with Pipe("lattice", "rescore", "ark:-", *options, "--out", "ark,t:-") as pipe:
        for utt in ("u1", "u2"):
            pipe.send(ENTRY.format(utt))
            entries.append(pipe.lines(1))
            while entries[-1][-1].strip():
                entries[-1] += pipe.lines(1) or [""]
        status, out, err = pipe.rest()
    assert (status, out) == (0, "") and err.startswith("2 lattices, 4 arcs, ")
    assert [entry[0].strip() for entry in entries] == ["u1", "u2"] and entries[0][1:] == entries[1][
        1:
    ]
    assert {line.split("\t")[2] for line in entries[0][1:] if line.count("\t") > 1} >= {"1", "2"}


def given(monkeypatch, content: bytes):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("nbest", "content", "message"),
    [
        ("-", b"{}\n", "-:1: key 'utt' is missing"),
        ("-", b'{"utt": "a", "hyps": []}\nx\n', "-:2: not JSON"),
        ("ark:-", b"nodash a b\n", "nodash"),
        ("scp:none", b"", "none: cannot read"),
        ("-", b"", "-: no utterances; give the recogniser's N-best lists"),
        ("ark:-", b"", "ark:-: no utterances; give the recogniser's N-best lists"),
        ("/dev/null", b"", "/dev/null: no utterances"),
    ],
)
def test_mistakes_in_a_pipe(lm, monkeypatch, capsys, nbest, content, message):
    given(monkeypatch, content)
    form = ["--format", "jsonl"] if nbest == "/dev/null" else []
    assert score(lm, nbest, f"{lm}/none", *form) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1 and not (lm / "none").exists()


def test_lists_without_hypotheses_have_no_scores(lm, monkeypatch, capsys):
    given(monkeypatch, b'{"utt": "a", "hyps": []}\n{"utt": "b", "hyps": [{"text": "king"}]}\n')
    assert score(lm, "-", "-") == 0
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()[1:-1]] == ["b#1"]
    assert printed.err.startswith("-: 1 hypotheses of 2 utterances")


def test_a_table_of_costs_from_a_file(lm, capsys):
    wanted = expected(lm, capsys)
    assert score(lm, f"{lm}/n.jsonl", f"ark,t:{lm}/costs") == 0
    rows = [line.split() for line in (lm / "costs").read_text().splitlines()]
    assert [key for key, _ in rows] == [f"u-{i}-{n}" for i in range(3) for n in (1, 2, 3)]
    assert [float(cost) for _, cost in rows] == pytest.approx(
        [-value for values in wanted.values() for value in values], rel=1e-6
    )


@pytest.mark.parametrize(
    "words",
    [
        "score --cache none --lm {0}/lm --nbest {0}/one.jsonl --out {1}",
        "select --lm {0}/lm --general {0}/lm --pool {0}/pool --keep 2 --out {1}",
        "ngram convert {0}/lm/lm.arpa {1}",
        "convert {0}/one.jsonl {1} --depth 1 --to srilm",
        "lattice posteriors {0}/u.slf --out {1}",
    ],
)
def test_outputs_of_a_shell(lm, capsys, words):
    """`>(program)` names a pipe that has no place, and what stands in a log stays there."""
    (lm / "pool").write_text("king\nqueen\nking queen\n")
    (lm / "u.slf").write_text(
        "VERSION=1.0\nUTTERANCE=u\nN=2 L=1\nI=0\nI=1 W=a\nJ=0 S=0 E=1 a=-1 l=-1\n"
    )
    jsonl.write(LISTS[:1], lm / "one.jsonl")
    assert main(split(words.format(lm, "/dev/stdout"))) == 0
    printed = capsys.readouterr().out
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        assert main(split(words.format(lm, f"/dev/fd/{writing}"))) == 0
        os.close(writing)
        assert stream.read().decode() == printed != ""
    with open(lm / "log", "w") as log:
        log.write("before\n")
        log.flush()
        words = [sys.executable, "-m", "lmtools", *split(words.format(lm, "/dev/stdout"))]
        assert subprocess.run(words, stdout=log, check=False).returncode == 0
    assert (lm / "log").read_text() == "before\n" + printed
