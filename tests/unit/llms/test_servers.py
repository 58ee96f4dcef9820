"""Models behind servers, against transformers on the same weights; a server that fails."""

import os
import random

import numpy as np
import pytest

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.score import load

pytest.importorskip("httpx", reason="httpx is not installed; pip install -e '.[llm]'")
pytest.importorskip("transformers", reason="transformers is not installed; pip install '.[hf]'")

from llm_server import KEY, LlmServer
from tiny_llm import write_model

from lmtools.llms import client

TEXTS = ["He sat on the mat.", "the cat looked out xyz", "é weather", "There is nothing new"]
RUNS = int(os.environ.get("LMTOOLS_FAULT_RUNS", "12"))  # 500 where all are wanted


def load_scorer(lm, cache="none"):
    return load(lm, Computing("cpu", cache=cache))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    directory = tmp_path_factory.mktemp("llm")
    return directory, *write_model(directory)


@pytest.fixture
def serve(home, monkeypatch):
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    opened = []

    def start(kind):
        opened.append(LlmServer(*home[1:], kind))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


@pytest.mark.parametrize("kind", ["vllm", "prompt"])
def test_scores_are_those_of_transformers(kind, home, serve):
    """Token by token."""
    own = load_scorer(f"hf:{home[0]}")
    far = load_scorer(f"{serve(kind).url},requests=3")
    texts = [*TEXTS, ""]
    wanted, got = (each.log_probs(each.prepare(texts)) for each in (own, far))
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-4)
    assert [len(far.unknown(s)) + 1 for s in far.prepare(texts)] == [len(row) for row in wanted]


def test_what_scores_no_text_is_refused(serve, monkeypatch):
    with pytest.raises(UserError, match=r"Ollama tells no log-probabilities.*gguf:FILE"):
        load_scorer(serve("ollama").url)
    with pytest.raises(UserError, match=r"llama.cpp's server tells no .*gguf:FILE"):
        load_scorer(serve("llama.cpp").url)
    cause = r"echo: has no log-probability of the first token of a text; .*gguf:FILE"
    with pytest.raises(UserError, match=cause):
        load_scorer(serve("llama-cpp-python").url)
    with pytest.raises(UserError, match="echo: says 3 tokens of a prompt and has scores of 0"):
        load_scorer(serve("bare").url)
    server = serve("vllm")
    with pytest.raises(UserError, match=r"which model\? give ,model=NAME .*\(tiny\)"):
        load_scorer(f"{server.url},model=other")
    with pytest.raises(UserError, match=r"no option 'modle' of a language model; known: .*model"):
        load_scorer(f"{server.url},modle=tiny")
    monkeypatch.setenv(client.KEY, KEY)
    server.faults = ["401"]
    with pytest.raises(UserError, match=f"key in .{client.KEY} may help") as error:
        load_scorer(server.url)
    assert KEY not in str(error.value) and server.seen["Authorization"] == f"Bearer {KEY}"
    rows = server.log_probs
    monkeypatch.setattr(server, "log_probs", lambda ids: rows(ids) * 0 - 5.0)
    with pytest.raises(UserError, match="no more probable than their words shuffled"):
        load_scorer(server.url)
    for url in ("http://user:pass@h/v1", "http://h/v1?key=1"):
        with pytest.raises(UserError, match="without user, password or key") as error:
            load_scorer(url)
        assert "pass" not in str(error.value).partition(":")[2].partition(": give")[0]


def test_a_run_goes_on_after_any_fault(home, serve, tmp_path, capsys, monkeypatch):
    """Random faults in any order: a run ends in scores or one line, and the next ones ask only for
    what was not answered; scores are those of transformers.
    """
    own = load_scorer(f"hf:{home[0]}")
    wanted = {
        text: row.sum() for text, row in zip(TEXTS, own.log_probs(own.prepare(TEXTS)), strict=True)
    }
    lists, out = tmp_path / "lists.jsonl", tmp_path / "out.scores"
    hyps = ", ".join(f'{{"text": "{text}"}}' for text in TEXTS)
    lists.write_text(f'{{"utt": "u", "hyps": [{hyps}]}}\n', encoding="utf-8")
    monkeypatch.setenv(client.KEY, KEY)
    servers = {kind: serve(kind) for kind in ("vllm", "prompt")}
    late = {kind: serve(kind) for kind in servers}  # what comes too late counts for no other run
    for run in range(RUNS):
        chance = random.Random(run)
        slow = run % 4 == 0  # an answer comes after the timeout; others may, on a busy machine
        server = chance.choice([*(late if slow else servers).values()])
        cache = tmp_path / f"cache{run}"
        lm = f"{server.url},requests={chance.randint(1, 4)},timeout={0.5 if slow else 60}"
        command = ["score", "--nbest", str(lists), "--lm", lm, "--cache", str(cache), "--out"]
        server.answered.clear()
        for turn in range(20):
            kinds = ["", "", "429", "500", "cut", "html", "nothing", "nan", "count"]
            begin = ["" for _ in range(chance.randint(0, 40))]
            server.faults = [*begin, *(chance.choice(kinds) for _ in range(6))] * (turn < 6)
            if turn == 0 and slow:
                server.faults = [*begin, "slow"]
            status = main([*command, str(out)])
            error = capsys.readouterr().err
            assert KEY not in error
            if status == 0:
                break
            assert status == 1 and len(error.strip().splitlines()) == 1, error
            assert not out.exists()
        lines = [line.split() for line in out.read_text().splitlines() if line.startswith("u#")]
        assert [float(line[1]) for line in lines] == pytest.approx([*wanted.values()], abs=1e-3)
        for text in () if slow else TEXTS:
            assert server.answered[f"{text}</s>"] == 1
        out.unlink()
        assert KEY.encode() not in b"".join(f.read_bytes() for f in cache.rglob("*.segment"))


def test_ceilings_hold_and_what_was_scored_stays(home, serve, tmp_path):
    server = serve("vllm")
    with pytest.raises(UserError, match="max_requests=20 is reached"):
        scorer = load_scorer(f"{server.url},max_requests=20", str(tmp_path))
        scorer.log_probs(scorer.prepare([f"{text} {n}" for n in range(9) for text in TEXTS]))
    assert sum(server.answered.values()) == 20
    with pytest.raises(UserError, match=r"max_tokens=100 may not suffice .*\(\d\d used\)"):
        load_scorer(f"{server.url},max_tokens=100", str(tmp_path))
