"""Requests from standard input, a line each, and their answers on standard output."""

import contextlib
import json
import os
import select
import signal
from collections.abc import Iterator

from lmtools.base.errors import UserError, one_line
from lmtools.base.files import too_long
from lmtools.serve.chooser import SOURCE, Answer, Chooser

BLOCK = 1 << 16  # bytes read at once


def answer_lines(chooser: Chooser, source: int, out, most: int) -> None:
    """Write the answer to each line of the descriptor `source` to the binary stream `out`; lines
    that have come together are scored together. Of a line that is no request, or of more than
    `most` bytes, it is `{"error": ...}`. SIGTERM and SIGINT end it like the end of the input.
    """
    for lines in read_together(source, most):
        fit = [line for line in lines if line is not None]
        answers = iter(chooser.answer(fit))
        for line in lines:
            answer = too_long(SOURCE, most) if line is None else next(answers)
            content = answer.content if isinstance(answer, Answer) else spell_error(answer)
            out.write(content + b"\n")
        out.flush()


def spell_error(error: Exception) -> bytes:
    """Return an error as JSON; of one that is not the request's fault only its kind."""
    if not isinstance(error, UserError):
        error = UserError(f"failed here ({type(error).__name__}); try it again, or alone")
    return json.dumps({"error": one_line(error)}).encode()


def read_together(source: int, most: int) -> Iterator[list[bytes | None]]:
    """Yield the lines that are there at once, those of white space apart; None stands for one of
    more than `most` bytes, which is not kept.
    """
    rest, dropping = b"", False
    with woken_by_signals() as wake:
        while True:
            if wake in select.select([source, wake], [], [])[0]:
                return
            block = os.read(source, BLOCK)
            *lines, rest = (rest + block).split(b"\n")
            if not block and (rest or dropping):  # the last line has no end
                lines, rest = [*lines, rest], b""
            kept = [None if len(line) > most else line for line in lines]
            if kept and dropping:
                kept[0], dropping = None, False
            if len(rest) > most or (dropping and rest):
                rest, dropping = b"", True
            if kept := [line for line in kept if line is None or line.strip()]:
                yield kept
            if not block:
                return


@contextlib.contextmanager
def woken_by_signals() -> Iterator[int]:
    """Have SIGTERM and SIGINT make a descriptor readable in place of what they do else."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = {kind: signal.signal(kind, lambda *_: None) for kind in kinds}
    known = signal.set_wakeup_fd(writing)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(known)
        for kind, handler in before.items():
            signal.signal(kind, handler)
        os.close(reading)
        os.close(writing)
