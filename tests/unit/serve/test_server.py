"""The service over HTTP and by standard input, with clients that mean well and others."""

import asyncio
import http.client
import json
import re
import resource
import signal
import socket
import threading
import time

import pytest
from processes import SILENCE, Service

from lmtools.base.errors import UserError
from lmtools.ngram import build
from lmtools.rescoring.weights import Dev, Weights
from lmtools.score import load
from lmtools.serve import server
from lmtools.serve.chooser import Answer
from lmtools.serve.waiting import Batcher, Refusal, Serving
from lmtools.text import Normaliser

MOST = 100_000  # bytes of a body
SECONDS = 3


def body(utt: str) -> str:
    hyps = [{"text": text, "scores": {"am": -1.0}} for text in ("the city", "the king", "king the")]
    return json.dumps({"utt": utt, "hyps": hyps})


@pytest.fixture(scope="module")
def words(tiny, tmp_path_factory):
    """The words of a command that serves an n-gram."""
    home = tmp_path_factory.mktemp("serve")
    build([tiny / "train.txt"], 2, home / "lm", Normaliser(), kenlm="none")
    features = {"am": 1.0, "new": 0.5}
    dev, signatures = Dev("dev", "0", 1, 1.0, 1.0), {"new": load(f"{home}/lm").signature}
    Weights("wer", features, "am", dev, signatures=signatures).save(home / "w.json")
    command = ["serve", "--lm", f"new={home}/lm", "--weights", home / "w.json"]
    return [*command, "--max-line", MOST]


@pytest.fixture(scope="module")
def service(words):
    more = ["--set", "port=0", f"seconds={SECONDS}"]
    with Service(*words, *more) as service:
        yield service.listen()
        status, err = service.end()
        assert (status, err) == (0, b"")  # none of the tests left a traceback


def test_answers_metrics_and_health(service):
    status, headers, content = service.ask("POST", "/rescore", body("u1"))
    answer = json.loads(content)
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert answer["utt"] == "u1" and sorted(answer["order"]) == [1, 2, 3]
    assert answer["chosen"] == answer["hyps"][0]["text"] != "king the"
    totals = [hyp["scores"]["total"] for hyp in answer["hyps"]]
    assert totals == sorted(totals, reverse=True)
    assert service.ask("GET", "/health")[::2] == (200, '{"status": "ok"}')
    status, headers, page = service.ask("GET", "/metrics")
    assert headers["Content-Type"] == "text/plain; version=0.0.4"
    value = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert int(value['lmtools_requests_total{path="/rescore",status="200"}']) >= 1
    assert int(value["lmtools_hypotheses_total"]) == 3 * int(value["lmtools_lists_total"]) > 0
    assert value['lmtools_request_seconds_bucket{le="+Inf"}'] == value["lmtools_lists_total"]
    assert value["lmtools_queue_requests"] == "0" and float(value["lmtools_request_seconds_sum"])
    for line in page.splitlines():
        assert re.fullmatch(r'# TYPE \w+ \w+|\w+(\{\w+="[^"]+"(,\w+="\d+")?\})? [\d.]+', line), line


def test_each_of_many_clients_gets_its_own_answer(service):
    answers = {}

    def ask(name):
        client = http.client.HTTPConnection("127.0.0.1", service.port, timeout=SILENCE)
        for number in range(10):  # one connection
            client.request("POST", "/rescore", body(f"{name}-{number}"))
            answers[name, number] = json.loads(client.getresponse().read())["utt"]

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {(n, i): f"{n}-{i}" for n in range(8) for i in range(10)}


@pytest.mark.parametrize(
    ("request_", "status", "why"),
    [
        (("POST", "/rescore", "{"), 400, "not JSON"),
        (("POST", "/rescore", body("u").replace("-1.0", "NaN")), 400, "finite number"),
        (("POST", "/rescore", body("u").replace('"am"', '"x"')), 400, "no feature am"),
        (("POST", "/rescore", " " * (MOST + 1)), 413, "--max-line"),
        (("GET", "/rescore"), 405, "takes POST"),
        (("GET", "/../etc/passwd"), 404, "use /rescore"),
    ],
)
def test_wrong_requests(service, request_, status, why):
    answered, _, content = service.ask(*request_)
    assert answered == status and why in json.loads(content)["error"]
    assert "Traceback" not in content and content.count("\n") == 0


def test_pages_in_browsers_are_refused(service):
    assert service.ask("POST", "/rescore", body("u"), Origin="http://a.example")[0] == 403


def test_names_of_other_machines_are_refused(service):
    """A page whose name leads to this machine asks without Origin."""
    for request_ in (("GET", "/health"), ("GET", "/metrics"), ("POST", "/rescore", body("u"))):
        for host in ("localhost", "127.0.0.1:8000", "[::1]:80", "gpu-1:8000"):
            assert service.ask(*request_, Host=host)[0] == 200
        for host in ("a.example", "a.example:8000", "127.0.0.1.a.example", "localhost.a"):
            status, _, content = service.ask(*request_, Host=host)
            assert status == 403 and "ask by the address, or localhost" in content
    assert service.send(b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_key_is_asked_for(words, monkeypatch):
    monkeypatch.setenv("LMTOOLS_API_KEY", "s\u00e9same")
    with Service(*words, "--set", "port=0") as service:
        service.listen()
        for shown in ({}, {"Authorization": "Bearer sesame"}, {"Authorization": "s\u00e9same"}):
            status, headers, content = service.ask("POST", "/rescore", body("u"), **shown)
            assert status == 401 and headers["WWW-Authenticate"] == "Bearer"
            assert "LMTOOLS_API_KEY" in content and "same" not in content
        shown = {"Authorization": "Bearer s\u00e9same".encode()}
        assert service.ask("POST", "/rescore", body("u"), **shown)[0] == 200
        assert service.ask("GET", "/health")[0] == 200


def test_no_descriptors_are_told_in_one_line(words):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    with Service(*words, "--set", "port=0", preexec_fn=few) as service:
        address = ("127.0.0.1", service.listen().port)
        clients = [socket.create_connection(address, SILENCE) for _ in range(60)]
        time.sleep(2.5)  # asyncio tries each second
        for client in clients:
            client.close()
        assert service.ask("GET", "/health")[0] == 200
        status, err = service.end()
    assert status == 0 and err.count(b"\n") == 1
    assert b"Too many open files; raise ulimit -n" in err


START = b"POST /rescore HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
PIECES = b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE = {
    "no HTTP": ((b"\x16\x03\x01\0\xff\r\n\r\n",), b"400"),
    "a million bytes of headers": ((START, b"a: b\r\n" * 170_000), b"431"),
    "one endless header": ((START, b"a: " + b"b" * 1_000_000), b"431"),
    "a header without name": ((START + b": b\r\n\r\n",), b"400"),
    "two lengths": ((START + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",), b"400"),
    "no length": ((START + b"\r\n",), b"400"),
    "a length below 0": ((START + b"Content-Length: -1\r\n\r\n",), b"400"),
    "pieces": ((START + PIECES + b"1\r\n{\r\n0\r\n\r\n",), b"400"),
    "no pieces": ((START + PIECES + b"{}\r\n",), b"400"),
    "pieces without end": ((START + PIECES, *[b"3e8\r\n" + b" " * 1000 + b"\r\n"] * 150), b"413"),
    "half a piece": ((START + PIECES + b"3e8\r\n   ",), b"408"),
    "a huge length": ((START + b"Content-Length: 99999999999999999\r\n\r\n",), b"413"),
    "half a body": ((START + b"Content-Length: 99\r\n\r\n{",), b"408"),
    "half a header": ((START + b"Content-Le",), b"408"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_clients_do_no_harm(service, kind):
    parts, status = HOSTILE[kind]
    assert service.send(*parts).startswith(b"HTTP/1.1 " + status)
    service.send(*parts, close=True)
    assert service.ask("GET", "/health")[0] == 200


def test_slow_clients_are_cut_off_and_idle_ones_make_room(service):
    begin = time.monotonic()
    parts = [START, *[b"a: b\r\n"] * 200]
    with pytest.raises(OSError):
        while True:
            assert not service.send(*parts, pause=0.1)
    assert time.monotonic() - begin < 200 * 0.1
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(300)]
    assert service.ask("POST", "/rescore", body("u"))[0] == 200
    for client in idle:
        client.close()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_lines_of_standard_input(words, kind):
    with Service(*words, "--nbest", "-") as service:
        pipe, out = service.process.stdin, service.process.stdout
        long = b"x" * (3 * MOST)
        pipe.write(
            b"\n".join([body("a").encode(), b"{", b" ", long, f"[{body('b')}]".encode(), b""])
        )
        pipe.flush()
        answers = [json.loads(out.readline()) for _ in range(4)]
        assert answers[0]["utt"] == "a" and "not JSON" in answers[1]["error"]
        assert "--max-line" in answers[2]["error"] and answers[3][0]["utt"] == "b"
        pipe.write(b'{"half')
        pipe.flush()
        assert service.end(kind) == (0, b"")


class SlowChooser:
    """A chooser that needs some time, and fails on b"x"."""

    def __init__(self):
        self.batches = []

    def answer(self, bodies):
        self.batches.append(len(bodies))
        time.sleep(0.3)
        if b"x" in bodies:
            raise RuntimeError("x")
        return [Answer(body, 1, 1) for body in bodies]


def ask_all(bodies, **options) -> tuple[list, list[int]]:
    """What a Batcher answers when it is closed after requests, and the sizes of its batches."""
    chooser = SlowChooser()

    async def run():
        batcher = Batcher(chooser.answer, Serving(**options))
        working = asyncio.create_task(batcher.run())
        first = asyncio.create_task(batcher.ask(bodies[0]))
        await asyncio.sleep(0.1)  # it is under way
        rest = [asyncio.create_task(batcher.ask(body)) for body in bodies[1:]]
        await asyncio.sleep(0)
        batcher.close()
        results = await asyncio.gather(first, *rest, return_exceptions=True)
        await working
        return results

    return asyncio.run(run()), chooser.batches


def test_what_waits_is_scored_together_and_answered_at_the_end():
    results, batches = ask_all([b"1", b"2", b"3"])
    assert [result.content for result in results] == [b"1", b"2", b"3"] and batches == [1, 2]


def test_too_many_and_too_slow_requests_are_refused():
    results, _ = ask_all([b"1", b"2", b"3"], waiting=1)
    assert [type(result) for result in results] == [Answer, Answer, Refusal]
    assert results[2].status == 503 and results[2].headers == {"Retry-After": "1"}
    results, batches = ask_all([b"1", b"2"], seconds=0.15)
    assert [result.status for result in results] == [504, 504] and batches[0] == 1


def test_a_failure_ends_no_batcher():
    results, batches = ask_all([b"x", b"2"])
    assert type(results[0]) is RuntimeError and results[1].content == b"2" and batches == [1, 1]


def test_who_keeps_a_connection_delays_no_end(capsys):
    """Whose request is being answered when the signal comes."""

    async def run() -> bytes:
        chooser = SlowChooser()
        running = asyncio.create_task(
            server.serve(server.Service(chooser, Serving(port="0"), MOST))
        )
        while not (port := re.search(r":(\d+)\n", capsys.readouterr().err)):
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port[1]))
        writer.write(b"POST /rescore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n7")
        while not chooser.batches:
            await asyncio.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(running, 20)
        return await reader.read()

    assert asyncio.run(run()).endswith(b"\r\n\r\n7")


@pytest.mark.parametrize(
    "options", [{"port": "65536"}, {"port": "-1"}, {"waiting": 0}, {"port": 7}]
)
def test_options_out_of_range(options):
    with pytest.raises(UserError):
        Serving(**options)


def test_a_port_in_use_is_told(words, service):
    with Service(*words, "--set", f"port={service.port}") as other:
        assert other.process.wait() == 1
        (line,) = other.process.stderr.read().decode().splitlines()
    assert f"127.0.0.1:{service.port}: cannot listen there" in line
