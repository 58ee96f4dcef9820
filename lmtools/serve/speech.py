"""`POST /v1/audio/transcriptions` and `/v1/models`, as OpenAI's clients know them: recordings that
a Transcriber hears, one at a time.
"""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import BinaryIO

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lmtools.base.errors import UserError, one_line
from lmtools.base.log import say
from lmtools.serve.waiting import Batcher, Refusal, ServiceMetrics, Serving

PATH, MODELS = "/v1/audio/transcriptions", "/v1/models"
JSON, TEXT = "application/json", "text/plain; charset=utf-8"
EVENTS = "text/event-stream"
FORMATS = {"json": JSON, "text": TEXT, "srt": TEXT, "verbose_json": JSON, "vtt": TEXT}
GRANULARITIES = {"segment": "segments", "word": "words"}  # what verbose_json has of each
ALIAS = "whisper-1"  # OpenAI's name, which many clients have built in
FALLBACK = "X-Lmtools-Fallback"  # header: why the text is the recogniser's own
DOUBTS = "X-Lmtools-Doubts"  # header: why the text may be wrong
FIELDS, FIELD_BYTES = 100, 1 << 16  # most of a form's fields that are no files; bytes of one


class ClientLeftError(Exception):
    """Who asked went away."""


@dataclass
class Upload:
    """A recording that is to be heard; `gone`: nobody waits for it any more; `taken`: the thread
    that hears it reads its file; `heard`: what is called with each part of its text, of a `stream`.
    """

    file: BinaryIO
    language: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    stream: bool = False
    heard: Callable[[str], object] | None = None
    gone: bool = False
    taken: bool = False

    def check(self, *progress) -> None:
        """Raise ClientLeftError if nobody waits for it: progress of a Transcriber."""
        if self.gone:
            raise ClientLeftError


class Speech:
    """The part of a service that hears recordings, by `model`, the name of its recogniser."""

    def __init__(self, transcriber, model: str, serving: Serving, metrics: ServiceMetrics):
        self.transcriber, self.model, self.metrics = transcriber, model, metrics
        self.waiting = Batcher(self.hear, serving, alone=True)
        metrics.sums.update(recordings=0, audio_seconds=0, fallbacks=0)
        self.routes = [
            Route(PATH, self.transcribe, methods=["POST"]),
            Route(MODELS, self.list_models, methods=["GET"]),
            Route(MODELS + "/{name:path}", self.show_model, methods=["GET"]),
        ]

    def hear(self, recordings: list[Upload]) -> list:
        """Return the transcript of the one recording, in a thread that does nothing else."""
        (recording,) = recordings
        recording.taken = True
        recording.check()
        return [
            self.transcriber.transcribe(
                recording.file,
                language=recording.language,
                prompt=recording.prompt,
                temperature=recording.temperature,
                progress=recording.check,
                heard=recording.heard,
            )
        ]

    async def ask(self, recording: Upload, receive):
        """Return the transcript of a recording, or raise ClientLeftError once `receive`, which
        tells that, does; nobody reads the file any more, and who gave it may close it.
        """
        asked = asyncio.ensure_future(self.waiting.ask(recording))
        left = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((asked, left), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise ClientLeftError
            transcript = asked.result()
        finally:
            left.cancel()
            recording.gone = True
            if recording.taken:  # its file is not to be closed below the thread that reads it
                await asyncio.gather(asked, return_exceptions=True)
            asked.cancel()
        self.metrics.sums.update(recordings=1, audio_seconds=round(transcript.duration))
        if transcript.fallback:
            self.metrics.sums["fallbacks"] += 1
            say(f"lmtools serve: the second pass failed: {transcript.fallback}")
        return transcript

    async def transcribe(self, request: Request) -> Response:
        limits = {"max_files": 2, "max_fields": FIELDS, "max_part_size": FIELD_BYTES}
        async with contextlib.AsyncExitStack() as files:
            form = await files.enter_async_context(request.form(**limits))
            recording, form_of_answer, wanted = read_form(form)
            if recording.stream:
                events = self.tell(recording, request.receive, files.pop_all())
                return StreamingResponse(chain(await anext(events), events), media_type=EVENTS)
            transcript = await self.ask(recording, request.receive)
        told = {FALLBACK: transcript.fallback, DOUBTS: "; ".join(transcript.doubts)}
        headers = {name: ascii(one_line(UserError(x)))[1:-1] for name, x in told.items() if x}
        content = write_answer(transcript, form_of_answer, wanted)
        return Response(content, headers=headers, media_type=FORMATS[form_of_answer])

    async def tell(
        self, recording: Upload, receive, files: contextlib.AsyncExitStack
    ) -> AsyncIterator[bytes]:
        """Yield events of the parts of a recording's text, and one of the whole; `files` are closed
        in the end. Raise what `ask` does before the first event, which tells it later.
        """
        loop, texts, first = asyncio.get_running_loop(), asyncio.Queue(), True
        recording.heard = lambda text: loop.call_soon_threadsafe(texts.put_nowait, text)
        async with files:
            asked = asyncio.ensure_future(self.ask(recording, receive))
            asked.add_done_callback(lambda _: texts.put_nowait(None))
            try:
                while (text := await texts.get()) is not None:
                    part, first = text if first else f" {text}", False
                    yield spell_event({"type": "transcript.text.delta", "delta": part})
                whole = asked.result().text
                yield spell_event({"type": "transcript.text.done", "text": whole})
            except Exception as error:
                if first or isinstance(error, ClientLeftError):
                    raise
                yield b"data: " + spell_for_openai(error, 500) + b"\n\n"
            finally:
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)

    def describe(self, name: str) -> dict:
        return {"id": name, "object": "model", "created": 0, "owned_by": "lmtools"}

    async def list_models(self, request: Request) -> Response:
        models = [self.describe(name) for name in (self.model, ALIAS)]
        return answer_json({"object": "list", "data": models})

    async def show_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in (self.model, ALIAS):
            cause = f"no model {name[:40]!a} is here; use {self.model}"
            raise Refusal(404, cause, code="model_not_found", param="model")
        return answer_json(self.describe(name))


async def chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async with contextlib.aclosing(rest):
        async for event in rest:
            yield event


def spell_event(tree: dict) -> bytes:
    return f"data: {json.dumps(tree, ensure_ascii=False)}\n\n".encode()


def answer_json(tree: dict) -> Response:
    return Response(json.dumps(tree, ensure_ascii=False), media_type=JSON)


def read_form(form: FormData) -> tuple[Upload, str, set[str]]:
    """Return the recording of a form, the format of the answer and what verbose_json shall have;
    Refusal of wrong fields. Unknown fields and file names mean nothing.
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Refusal(400, "no field 'file' with a recording; send one", param="file")
    if not file.size:
        raise Refusal(400, "the file is empty; send a recording", param="file")
    texts = {name: read_text(form, name) for name in ("language", "prompt", "model")}
    form_of_answer = read_text(form, "response_format") or "json"
    if form_of_answer not in FORMATS:
        cause = f"response_format is {form_of_answer[:40]!a}; give {', '.join(FORMATS)}"
        raise Refusal(400, cause, param="response_format")
    field = "timestamp_granularities[]"
    wanted = {one for one in form.getlist(field) + form.getlist(field[:-2]) if one}
    if strange := [one for one in wanted if one not in GRANULARITIES]:
        cause = f"{field} is {str(strange[0])[:40]!a}; give {', '.join(GRANULARITIES)}"
        raise Refusal(400, cause, param=field)
    recording = Upload(file.file, texts["language"], texts["prompt"], read_temperature(form))
    stream = read_text(form, "stream") or "false"
    if stream.lower() not in ("true", "false"):
        raise Refusal(400, f"stream is {stream[:40]!a}; give true or false", param="stream")
    recording.stream = stream.lower() == "true"
    if recording.stream and form_of_answer not in ("json", "text"):
        cause = f"stream=true has events of text, no {form_of_answer}; give response_format=json"
        raise Refusal(400, cause, param="stream")
    return recording, form_of_answer, wanted or {"segment"}


def read_text(form: FormData, name: str) -> str | None:
    """Return a field that is a text, None without it; Refusal of a file."""
    text = form.get(name)
    if isinstance(text, UploadFile):
        raise Refusal(400, f"the field {name!r} is a file; send a text", param=name)
    return text or None


def read_temperature(form: FormData) -> float | None:
    text = read_text(form, "temperature")
    try:
        number = float(text or 0)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        cause = f"temperature is {text[:40]!a}; give a number from 0 to 1"
        raise Refusal(400, cause, param="temperature")
    return number if text else None


def write_answer(transcript, form: str, wanted: set[str]) -> str:
    """Return what an answer of a format says."""
    if form == "json":
        usage = {"type": "duration", "seconds": math.ceil(transcript.duration)}
        return json.dumps({"text": transcript.text, "usage": usage}, ensure_ascii=False)
    if form == "text":
        return f"{transcript.text}\n"
    if form != "verbose_json":
        return transcript.write(form)
    tree = json.loads(transcript.write(form))
    for name, key in GRANULARITIES.items():
        if name not in wanted:
            tree.pop(key)
    return json.dumps(tree, ensure_ascii=False)


def spell_for_openai(error: UserError, status: int) -> bytes:
    """Return an error as OpenAI's clients read it."""
    return json.dumps(
        {
            "error": {
                "message": one_line(error),
                "type": "server_error" if status >= 500 else "invalid_request_error",
                "param": getattr(error, "param", None),
                "code": getattr(error, "code", None),
            }
        }
    ).encode()
