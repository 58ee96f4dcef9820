"""The Wyoming protocol, which Home Assistant speaks: a second way to what hears recordings. It has
no key, so that its address is this machine's unless the user gives another.
"""

import asyncio
import contextlib
import tempfile
import wave

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_read_event, async_write_event
from wyoming.info import AsrModel, AsrProgram, Attribution, Describe, Info

from lmtools.base.errors import UserError, one_line
from lmtools.base.log import say
from lmtools.serve.speech import Speech, Upload
from lmtools.serve.waiting import Refusal, Serving, at_most, parse_port
from lmtools.version import __version__

BLOCK = 1 << 20  # most bytes of a part of an event
TALKS = 8  # at once
POLL = 0.5  # seconds from look to look whether the client is there
MADE = Attribution("lmtools", "https://example.org/lmtools")


class Parts:
    """A stream whose parts are not too large and do not come too late."""

    def __init__(self, reader: asyncio.StreamReader, seconds: float):
        self.reader, self.seconds = reader, seconds

    async def readline(self) -> bytes:
        with at_most(self.seconds):
            return await self.reader.readline()

    async def readexactly(self, size: int) -> bytes:
        if size > BLOCK:
            raise Refusal(413, f"a part of more than {BLOCK} bytes; send smaller ones")
        with at_most(self.seconds):
            return await self.reader.readexactly(size)


class Talks:
    """Clients of the Wyoming protocol, each of which sends sound, of at most `most` bytes, and gets
    its text.
    """

    def __init__(self, speech: Speech, serving: Serving, most: int):
        self.speech, self.serving, self.most = speech, serving, most
        self.tasks: set[asyncio.Task] = set()

    async def listen(self) -> asyncio.Server:
        """Return the listening server; UserError where the address cannot be listened on."""
        host, port = parse_port(self.serving.wyoming, "wyoming")
        try:
            server = await asyncio.start_server(self.talk, host, port)
        except OSError as error:
            cause = f"{host}:{port}: cannot listen there ({error.strerror or error})"
            raise UserError(f"{cause}; give another --set wyoming=ADDRESS:PORT") from None
        say("listening on tcp://{}:{}".format(*server.sockets[0].getsockname()[:2]))
        return server

    async def end(self, server: asyncio.Server) -> None:
        """Listen no more, and have what was heard sent."""
        server.close()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=POLL)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the events of a connection until it ends, or breaks the protocol."""
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            if len(self.tasks) <= TALKS:
                await self.answer(reader, writer)
        except Exception as error:  # of a client, or of its sound
            told = error if isinstance(error, UserError) else UserError(type(error).__name__)
            with contextlib.suppress(Exception), at_most(self.serving.seconds):
                await async_write_event(Error(one_line(told)).event(), writer)
        finally:
            self.tasks.discard(task)
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts, language = Parts(reader, self.serving.seconds), None
        file = sound = None
        with contextlib.ExitStack() as files:
            while event := await async_read_event(parts):
                if Describe.is_type(event.type):
                    await self.send(self.describe(), writer)
                elif Transcribe.is_type(event.type):
                    language = Transcribe.from_event(event).language
                elif AudioStart.is_type(event.type):
                    files.close()
                    file = files.enter_context(tempfile.SpooledTemporaryFile(BLOCK))
                    sound = start_sound(file, event)
                    files.callback(sound.close)  # before the file's end, in any case
                elif AudioChunk.is_type(event.type) and sound:
                    sound.writeframes(AudioChunk.from_event(event).audio)
                    if file.tell() > self.most:
                        raise Refusal(413, f"more than {self.most} bytes of sound; send less")
                elif AudioStop.is_type(event.type) and sound:
                    sound.close()
                    file.seek(0)
                    heard = await self.speech.ask(Upload(file, language), lambda: left(reader))
                    await self.send(Transcript(heard.text, language=heard.language), writer)
                    sound = None

    async def send(self, event: Eventable, writer: asyncio.StreamWriter) -> None:
        with at_most(self.serving.seconds):
            await async_write_event(event.event(), writer)

    def describe(self) -> Info:
        about = {"attribution": MADE, "installed": True, "version": __version__}
        model = AsrModel(self.speech.model, description="Whisper", languages=["en"], **about)
        text = "Whisper with a second pass by language models"
        return Info([AsrProgram("lmtools", description=text, models=[model], **about)])


def start_sound(file, event: Event) -> wave.Wave_write:
    """Return what writes samples into a file, as a WAV of the event's format."""
    start = AudioStart.from_event(event)
    if not (0 < start.channels < 9 and 0 < start.width < 5 and 0 < start.rate < 1 << 20):
        raise UserError("no such rate, width or number of channels; send PCM of 16 bits")
    sound = wave.open(file, "wb")  # noqa: SIM115
    sound.setparams((start.channels, start.width, start.rate, 0, "NONE", None))
    return sound


async def left(reader: asyncio.StreamReader) -> None:
    """Return when the client is gone."""
    while not reader.at_eof():
        await asyncio.sleep(POLL)
