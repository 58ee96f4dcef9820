"""Recordings over HTTP: OpenAI's own client, the forms of others, and clients that do harm."""

import asyncio
import io
import json
import os
import random
import re
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import fake_listener
import numpy as np
import pytest
import soundfile
from processes import SILENCE, Service

import lmtools
from lmtools.cli import main
from lmtools.decode import recognisers
from lmtools.ears import listening
from lmtools.ngram import build
from lmtools.serve import server, speech, waiting
from lmtools.text import Normaliser
from lmtools.transcribe import transcriber

openai = pytest.importorskip("openai")
import httpx  # noqa: E402
from wyoming.asr import Transcribe, Transcript  # noqa: E402
from wyoming.audio import AudioChunk, AudioStart, AudioStop  # noqa: E402
from wyoming.client import AsyncClient  # noqa: E402
from wyoming.info import Describe, Info  # noqa: E402

TESTS = Path(__file__).parents[2]
# a recogniser that needs no model, as slow as the file `slow` says, and a second pass that fails
# while there is a file `broken`
SCRIPT = """
import sys, time
from pathlib import Path
import fake_listener
from lmtools.transcribe import second, transcriber
fake_listener.install()
choose = second.SecondPass.choose

def listen(*args, **more):
    for window in fake_listener.listen(*args, **more):
        Path("windows").open("a").write("x")
        if Path("slow").exists():
            time.sleep(float(Path("slow").read_text()))
        yield window

def fail(self, *given):
    if Path("broken").exists():
        raise RuntimeError("no such word: \u20ac")
    return choose(self, *given)

transcriber.listen, second.SecondPass.choose = listen, fail
from lmtools.cli import main
sys.exit(main(sys.argv[1:]))
"""
TEXT = "we see the sea\na blue finch it sings\nthe sea is blue\n" * 3
ATTACKS = int(os.environ.get("LMTOOLS_ATTACKS", 64))  # requests that do harm; 500 take minutes
MOST = 200_000 if ATTACKS < 500 else 12_500_000  # --max-line: a recording has 16 times as much
LARGE = 16 * MOST
PATH = "/v1/audio/transcriptions"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a fake recogniser, an n-gram, a glossary and recordings."""
    home = tmp_path_factory.mktemp("speech")
    (home / "text").write_text(TEXT)
    build([home / "text"], 2, home / "lm", Normaliser(), kenlm="none")
    (home / "m").mkdir()
    (home / "m/model").write_text("word\n")
    tone = np.sin(np.arange(16_000 * 21) / 20) / 3
    soundfile.write(home / "a.wav", tone, 16_000)
    soundfile.write(home / "a.flac", tone, 16_000)
    (home / "windows").touch()
    (home / "empty.wav").touch()
    (home / "long").write_text("word " * 20_000)
    (home / "text.wav").write_text("this is no sound\n" * 1000)
    return home


@pytest.fixture(scope="module")
def service(home):
    words = ["serve", "--asr", "whisper:m", "--lm", "new=lm", "--device", "cpu"]
    words += ["--max-line", MOST, "--set", "port=0", "seconds=3", "waiting=4", "wyoming=0"]
    path = f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    more = {"cwd": home, "env": {**os.environ, "PYTHONPATH": path, "LMTOOLS_API_KEY": "key"}}
    with Service(*words, program=("-c", SCRIPT), seconds=SILENCE + 2 * ATTACKS, **more) as service:
        service.listen()
        service.wyoming = service.find(rb"listening on tcp://127.0.0.1:(\d+)\n")
        yield service
        (home / "slow").unlink(missing_ok=True)
        status, err = service.end()
        assert status == 0 and b"Traceback" not in err


@pytest.fixture
def client(service):
    url = f"http://127.0.0.1:{service.port}/v1"
    return openai.OpenAI(base_url=url, api_key="key", max_retries=0, timeout=SILENCE)


@pytest.fixture(scope="module")
def wanted(home):
    """What a Transcriber of this process hears."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(transcriber, "listen", None)
        patch.setitem(recognisers.RECOGNISERS, "whisper", None)
        fake_listener.install()
        return lmtools.Transcriber("whisper:m", ["new=lm"]).transcribe("a.wav")


def ask(client, home, name="a.wav", **more):
    with open(home / name, "rb") as file:
        return client.audio.transcriptions.create(file=file, model="whisper-1", **more)


def test_openais_client_gets_what_transcribe_writes(client, home, wanted):
    assert wanted.text != " ".join(one.first for one in wanted.segments)  # the second pass did it
    assert ask(client, home).text == wanted.text
    assert ask(client, home, "a.flac", temperature=0.2, language="en").text == wanted.text
    assert ask(client, home, response_format="text") == f"{wanted.text}\n"
    for form in ("srt", "vtt"):
        assert ask(client, home, response_format=form) == wanted.write(form)
    tree = json.loads(wanted.write("verbose_json"))
    both = ask(
        client, home, response_format="verbose_json", timestamp_granularities=["word", "segment"]
    )
    assert both.text == wanted.text and both.duration == 21 and both.language == "english"
    assert [one.model_dump() for one in both.segments] == tree["segments"]
    assert [one.model_dump() for one in both.words] == tree["words"]
    plain = ask(client, home, response_format="verbose_json")
    assert plain.segments == both.segments and plain.words is None
    names = [one.id for one in client.models.list()]
    assert names == ["m", "whisper-1"] and client.models.retrieve("m").owned_by == "lmtools"
    with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
        client.models.retrieve("gpt")


def test_a_stream_tells_the_text_as_it_is_heard(service, client, home, wanted):
    events = list(ask(client, home, stream=True))
    *parts, done = events
    assert len(parts) == 3 and {one.type for one in parts} == {"transcript.text.delta"}
    assert "".join(one.delta for one in parts) == wanted.text
    assert (done.type, done.text) == ("transcript.text.done", wanted.text)
    for more in ({"response_format": "srt"}, {"extra_body": {"stream": "yes"}}):
        with pytest.raises(openai.BadRequestError) as refused:
            ask(client, home, **{"stream": True, **more})
        assert refused.value.param == "stream" and ";" in refused.value.message
    with pytest.raises(openai.BadRequestError, match="cannot be read as audio"):
        ask(client, home, "text.wav", stream=True)
    (home / "slow").write_text("0.3")
    try:  # whoever leaves is not waited for
        with ask(client, home, stream=True) as stream:
            assert next(iter(stream)).delta
        assert ask(client, home).text == wanted.text
    finally:
        (home / "slow").unlink()


def test_a_fault_of_the_second_pass_is_told_beside_the_recognisers_own_text(client, home, wanted):
    (home / "broken").touch()
    try:
        with open(home / "a.wav", "rb") as file:
            answer = client.audio.transcriptions.with_raw_response.create(file=file, model="m")
    finally:
        (home / "broken").unlink()
    assert answer.headers["X-Lmtools-Fallback"] == "no such word: \\u20ac"
    assert answer.parse().text == " ".join(one.first for one in wanted.segments)
    with open(home / "a.wav", "rb") as file:
        answer = client.audio.transcriptions.with_raw_response.create(file=file, model="m")
    assert "X-Lmtools-Fallback" not in answer.headers and answer.parse().text == wanted.text


# what clients send, as curl writes it: OpenAI's documentation; requests (Open WebUI: texts before
# the file); form-data of Node (in pieces, n8n); whisper.cpp's (fields of its own); phones (a name
# that is no file's, an empty language)
CLIENTS = {
    "documentation": (
        *("-F", "file=@a.wav", "-F", "timestamp_granularities[]=word", "-F", "model=whisper-1"),
        *("-F", "response_format=verbose_json"),
    ),
    "requests": ("-F", "model=whisper-1", "-F", "language=en", "-F", "file=@a.wav;type=audio/wav"),
    "form-data": (
        *("-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-F", "stream=false"),
        *("-F", "file=@a.flac;filename=blob;type=application/octet-stream", "-F", "model=x"),
    ),
    "whisper.cpp": (
        *("-F", "file=@a.wav", "-F", "temperature=0.0", "-F", "temperature_inc=0.2"),
        *("-F", "response_format=json", "-F", "chunking_strategy=auto", "-F", "include[]=logprobs"),
    ),
    "phone": (
        "-F",
        "language=",
        "-F",
        "prompt=",
        "-F",
        "file=@a.flac;filename=../../etc/\u00e9 .m4a",
    ),
}


def curl(service, home, *words) -> tuple[int, dict]:
    url = f"http://localhost:{service.port}{PATH}"
    command = ["curl", "-s", "-w", "\n%{http_code}", "-H", "Authorization: Bearer key", url, *words]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=SILENCE)
    content, status = done.stdout.rsplit("\n", 1)
    return int(status), json.loads(content)


@pytest.mark.parametrize("name", CLIENTS)
def test_forms_of_other_clients(service, home, wanted, name):
    status, tree = curl(service, home, *CLIENTS[name])
    assert status == 200 and tree["text"] == wanted.text
    assert ("words" in tree, "segments" in tree) == (name == "documentation", False)


WRONG = {
    "no file": (("-F", "model=m"), "file", "send one"),
    "a text": (("-F", "file=a.wav"), "file", "send one"),
    "empty": (("-F", "file=@empty.wav"), "file", "empty"),
    "no sound": (("-F", "file=@text.wav"), None, ""),
    "format": (("-F", "file=@a.wav", "-F", "response_format=doc"), "response_format", "verbose"),
    "hot": (("-F", "file=@a.wav", "-F", "temperature=nan"), "temperature", "0 to 1"),
    "file as text": (("-F", "file=@a.wav", "-F", "prompt=@text"), "prompt", "send a text"),
    "unit": (
        ("-F", "file=@a.wav", "-F", "timestamp_granularities[]=x"),
        *("timestamp_granularities[]", "word"),
    ),
    "long prompt": (("-F", "file=@a.wav", "-F", "prompt=<long"), None, "64KB"),
    "no form": (("-d", "{}"), "file", "send one"),
    "no boundary": (("-H", "Content-Type: multipart/form-data", "-d", "x"), None, "oundary"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_have_the_shape_that_openais_clients_read(service, home, name):
    words, param, why = WRONG[name]
    status, tree = curl(service, home, *words)
    error = tree["error"]
    assert status == 400 and error["type"] == "invalid_request_error" and why in error["message"]
    assert error["param"] == param and error["code"] is None


def test_errors_raise_what_openais_client_knows(client, service, home):
    with pytest.raises(openai.AuthenticationError, match="LMTOOLS_API_KEY"):
        ask(client.with_options(api_key="other"), home)
    with pytest.raises(openai.BadRequestError, match="temperature is"):
        ask(client, home, temperature=3)
    with pytest.raises(openai.NotFoundError, match="nothing is there"):
        client.audio.translations.create(file=b"x", model="m")
    (home / "large.wav").write_bytes(bytes(LARGE + 1))
    with pytest.raises(openai.APIStatusError, match="larger --max-line") as error:
        ask(client, home, "large.wav")
    assert error.value.status_code == 413


def metric(service, name) -> int:
    page = service.ask("GET", "/metrics", Authorization="Bearer key")[2]
    return int(re.search(rf"{name} (\d+)", page)[1])


def test_who_leaves_is_not_heard_to_the_end(service, home):
    """Neither the recording that is being heard, nor those that wait, of which four may."""
    (home / "slow").write_text("1")
    request = form((home / "a.wav").read_bytes())
    clients = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(7)]
    before = len((home / "windows").read_text())
    try:
        for client in clients:
            client.sendall(request)
            time.sleep(0.1)
        refused = [client.recv(99) for client in clients[5:]]
        assert all(answer.startswith(b"HTTP/1.1 503") for answer in refused)
        for client in clients:
            client.close()
        until = time.monotonic() + SILENCE
        while metric(service, "lmtools_queue_requests") and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        (home / "slow").unlink()
    assert curl(service, home, "-F", "file=@a.wav")[0] == 200
    assert len((home / "windows").read_text()) - before <= 2 + 3  # of three a recording


def test_no_file_is_closed_below_the_thread_that_reads_it():
    started, read = threading.Event(), []

    class SlowTranscriber:
        def transcribe(self, file, progress, **_):
            started.set()
            time.sleep(0.2)
            read.append(file.read())
            progress()

    async def leave():
        made = waiting.Serving(), waiting.ServiceMetrics()
        one = speech.Speech(SlowTranscriber(), "m", *made)
        working = asyncio.create_task(one.waiting.run())
        with io.BytesIO(b"sound") as file, pytest.raises(speech.ClientLeftError):
            await one.ask(speech.Upload(file), lambda: asyncio.to_thread(started.wait))
        one.waiting.close()
        await working

    asyncio.run(leave())
    assert read == [b"sound"]


def form(sound: bytes, length: int | None = None) -> bytes:
    """A request with a recording, of which the head says `length` bytes."""
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    body = part + sound + b"\r\n--b--\r\n"
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key\r\n"
    head += "Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


def attack(port: int, number: int, large: int, sound: bytes, slowest: float) -> Counter:
    """What that many hostile clients are answered, eight at a time: the status, b"" where the
    connection ends without, or what they did.
    """
    answers, turns = Counter(), iter(range(number))
    whole = form(sound)

    def ask(kind: int, turn: int, draw: random.Random) -> bytes:
        with socket.create_connection(("127.0.0.1", port), SILENCE) as client:
            if kind == 0:  # cut anywhere
                client.sendall(whole[: draw.randrange(len(whole))])
                return b"cut"
            if kind == 1:  # cut while it is heard, or waits
                client.sendall(whole)
                time.sleep(draw.random() / 10)
                return b"left"
            if kind == 2:  # wrong types
                client.sendall(form(draw.randbytes(draw.randrange(1, 99_999))))
            elif kind == 3:
                client.sendall(form(b""))
            elif kind == 4:  # a head that lies, and a slow sender
                client.sendall(whole[: len(whole) // 2] if draw.random() < 0.5 else whole[:300])
                until = time.monotonic() + draw.random() * slowest
                while time.monotonic() < until:
                    time.sleep(0.2)
                    client.sendall(b"x")
            elif kind == 5:  # damaged heads and forms
                damaged = bytearray(whole[:2000])
                for _ in range(20):
                    damaged[draw.randrange(2000)] = draw.randrange(256)
                client.sendall(damaged)
                client.shutdown(socket.SHUT_WR)
            elif kind == 6:
                client.sendall(form(bytes(large if turn % 32 == 6 else large // 100)))
            else:
                client.sendall(whole)
            return client.recv(12)[9:]

    def work():
        for turn in turns:
            draw = random.Random(turn)
            try:
                answer = ask(turn % 8, turn, draw)
            except TimeoutError:
                answer = b"hangs"
            except OSError:
                answer = b"reset"
            answers[answer.decode("latin-1")] += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def measure(pid: int) -> tuple[int, int, int]:
    """The memory of a process in MB, its open files and its threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    sizes = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads"))
    memory, threads = sizes
    return memory >> 10, len(os.listdir(f"/proc/{pid}/fd")), threads


def test_an_attack_leaves_nothing_behind(service, home, wanted):
    sound = (home / "a.flac").read_bytes()
    attack(service.port, 16, LARGE // 2, sound, 1)  # what is loaded when it is first used
    before = measure(service.process.pid)
    answers = attack(service.port, ATTACKS, LARGE // 2, sound, 1)
    assert answers["200"] >= 1 and answers["400"] >= 1 and not answers["hangs"]
    until = time.monotonic() + 20
    while measure(service.process.pid)[1] > before[1] + 1 and time.monotonic() < until:
        time.sleep(0.2)
    memory, files, threads = measure(service.process.pid)
    print(dict(answers), "MB, files, threads:", before, (memory, files, threads))
    assert memory < before[0] + 30 and files <= before[1] + 1 and threads <= before[2] + 40
    assert metric(service, "lmtools_queue_requests") == 0
    status, tree = curl(service, home, "-F", "file=@a.wav")
    assert status == 200 and tree["text"] == wanted.text


def test_an_ear_hears_what_clients_send(home, wanted, monkeypatch, capsys):
    monkeypatch.chdir(home)
    monkeypatch.setattr(transcriber, "listen", None)
    monkeypatch.setitem(recognisers.RECOGNISERS, "whisper", None)
    monkeypatch.setitem(listening.EARS, "fake", fake_listener.FakeEar)
    fake_listener.install()
    answers = []

    async def ask(service):
        working = [asyncio.create_task(one.run()) for one in service.batchers]
        door = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=door, base_url="http://localhost") as client:
            with open("a.wav", "rb") as file:
                answers.append(await client.post(PATH, files={"file": file}))
            nbest = {"utt": "u", "hyps": [{"text": "the sea", "scores": {"am": -1}}]}
            answers.append(await client.post("/rescore", json=nbest))
        for one in service.batchers:
            one.close()
        await asyncio.gather(*working)

    monkeypatch.setattr(server, "serve", ask)
    words = ["serve", "--ear", "fake:x", "--lm", "new=lm", "--device", "cpu"]
    assert main(words) == 1 and "--ear: hears the recordings of --asr" in capsys.readouterr().err
    assert main([*words, "--asr", "whisper:m"]) == 0
    assert "second pass: new and a second ear, weights default" in capsys.readouterr().err
    made = lmtools.Transcriber("whisper:m", ["new=lm"], ear=fake_listener.FakeEar())
    assert answers[0].json()["text"] == made.transcribe("a.wav").text != wanted.text
    assert answers[1].json()["chosen"] == "the sea"


def test_wyomings_own_client_gets_the_same_text(service, home, wanted):
    sound, rate = soundfile.read(home / "a.flac", dtype="int16")
    taken = {"rate": rate, "width": 2, "channels": 1}

    async def ask(*events, answers=1) -> list:
        uri = f"tcp://127.0.0.1:{service.wyoming}"
        async with AsyncClient.from_uri(uri) as client:
            for event in events:
                await client.write_event(event)
            return [await client.read_event() for _ in range(answers)]

    chunks = [AudioChunk(**taken, audio=part.tobytes()) for part in np.array_split(sound, 30)]
    spoken = [AudioStart(**taken), *chunks, AudioStop()]
    events = [one.event() for one in (Describe(), Transcribe(language="en"), *spoken)]
    info, text = asyncio.run(ask(*events, answers=2))
    assert Info.from_event(info).asr[0].models[0].name == "m"
    assert Transcript.from_event(text).text == wanted.text
    empty, strange = AudioStart(**taken).event(), AudioStart(0, 99, -1).event()
    for wrong in ([empty, AudioStop().event()], [strange]):
        (error,) = asyncio.run(ask(*wrong))
        assert error.type == "error" and error.data["text"], wrong[0]
    large = b'{"type": "audio-chunk", "payload_length": 1048577}\n'
    for line in (large, b"[]\n", b"{}\n", b"x" * 99_999, b'{"data_length": "x"}\n'):
        with socket.create_connection(("127.0.0.1", service.wyoming), SILENCE) as client:
            client.sendall(line)
            answer = client.recv(999)
            assert b"error" in answer if line != b"x" * 99_999 else b"transcript" not in answer
    (info,) = asyncio.run(ask(Describe().event()))
    assert info.type == "info"
