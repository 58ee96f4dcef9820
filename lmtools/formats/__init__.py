"""N-best list formats, one file each; FORMATS names them, and each reads to and writes from lists of NBest.

A new format is a module with `recognises(path, first line)`, `read(path)` and `write(nbests, path)`, and one line in FORMATS.
Formats that hold one text an utterance (trn, Kaldi text) read to and write from a dict; `one_best` makes N-best formats of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats import espnet2, jsonl, kaldi_text, trn
from lmtools.formats.checks import checked
from lmtools.types import Hypothesis, NBest


@dataclass(frozen=True)
class Format:
    """How one format is described, recognised (from a path and its first line, '' for a directory), read and written.

    `lists` is False where a file holds one text an utterance, which may be a hypothesis or a reference.
    """

    about: str
    recognises: Callable[[Path, str], bool]
    read: Callable[..., list[NBest]]
    write: Callable[..., None]
    lists: bool = True


def of(module: ModuleType, about: str) -> Format:
    """The format that `module` implements."""
    return Format(about, module.recognises, module.read, module.write)


def one_best(module: ModuleType, about: str, recognises: Callable[[Path, str], bool]) -> Format:
    """The N-best format of a `module` whose files hold one text an utterance: lists of one hypothesis without scores."""

    def read(path) -> list[NBest]:
        return [NBest(utt, (Hypothesis(text),)) for utt, text in module.read(path).items()]

    def write(nbests: Iterable[NBest], path) -> None:
        nbests = list(checked(nbests, path))
        if longer := [nbest.utt for nbest in nbests if len(nbest.hyps) > 1]:
            raise UserError(f"{path}: holds one hypothesis an utterance, and {longer[0]!r} has more; cut the lists with --depth 1")
        module.write({nbest.utt: nbest.hyps[0].text for nbest in nbests if nbest.hyps}, path)

    return Format(about, recognises, read, write, lists=False)


FORMATS = {
    "jsonl": of(jsonl, "one utterance a line with reference, hypotheses and their scores"),
    "espnet2": of(espnet2, "ESPnet2 decode directory with {n}best_recog/text and score"),
    "trn": one_best(trn, "sclite: words, then the id in parentheses; one hypothesis an utterance", trn.recognises),
    "kaldi-text": one_best(kaldi_text, "`utt w1 w2 ...`; one hypothesis an utterance", lambda path, first: False),
}


def detect(path, default: str | None = None) -> str:
    """The name of the format of the file or directory `path`, or `default` if none recognises it; UserError if that is None too."""
    remedy = f"name its format with --from: {', '.join(FORMATS)}"
    if str(path) == "-":
        raise UserError(f"standard input is not looked into; {remedy}")
    first = "" if Path(path).is_dir() else next(read_lines(path), (1, ""))[1]
    names = [name for name, form in FORMATS.items() if form.recognises(Path(path), first)]
    if len(names) > 1 or not (names or default):
        raise UserError(f"{path}: could be {' or '.join(names) or 'anything'}; {remedy}")
    return names[0] if names else default


def read(path, name: str | None = None) -> list[NBest]:
    """The N-best lists in `path`, in format `name` (None: the one that recognises it)."""
    return FORMATS[name or detect(path)].read(path)
