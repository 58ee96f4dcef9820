"""Requests from standard input, a line each, and their answers on standard output."""

import os
import select
import signal
from collections.abc import Iterator

from lmtools.base.files import too_long
from lmtools.serve.chooser import SOURCE, Answer, Chooser, spell_error

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


def read_together(source: int, most: int) -> Iterator[list[bytes | None]]:
    """Yield the lines that are there at once, those of white space apart; None stands for one of
    more than `most` bytes, which is not kept.
    """
    rest, dropping = b"", False
    wake, writing = os.pipe()  # which signals make readable
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: None)
    while wake not in select.select([source, wake], [], [])[0]:
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
