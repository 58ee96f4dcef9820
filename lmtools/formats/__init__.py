"""N-best list formats, one file each; FORMATS names them, and each reads to and writes from NBest.

A new format is a module with `recognises(path, first line)`, `read(path)` and `write(nbests,
path)`, and one line in FORMATS. Formats that hold one text an utterance (trn, Kaldi text) read to
and write from a dict; `one_best` makes N-best formats of them. Lattice formats are in
`lmtools.formats.lattices`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from lmtools.errors import UserError
from lmtools.formats import (
    ctm,
    espnet1,
    espnet2,
    fairseq,
    hyporadise,
    icefall,
    jsonl,
    kaldi_nbest,
    kaldi_text,
    marian,
    mlm,
    moses,
    registry,
    srilm,
    systems,
    trn,
    whisper,
)
from lmtools.formats.checks import check_nbests
from lmtools.formats.registry import Format, format_of
from lmtools.types import Hypothesis, NBest


def one_best(module: ModuleType, about: str, recognises: Callable[[Path, str], bool]) -> Format:
    """The N-best format of a `module` whose files hold one text an utterance: lists of one
    hypothesis without scores.
    """

    def read(path) -> list[NBest]:
        return [NBest(utt, (Hypothesis(text),)) for utt, text in module.read(path).items()]

    def write(nbests: Iterable[NBest], path) -> None:
        nbests = list(check_nbests(nbests, path))
        if longer := [nbest.utt for nbest in nbests if len(nbest.hyps) > 1]:
            raise UserError(
                f"{path}: holds one hypothesis an utterance, and {longer[0]!r} has more; cut the"
                " lists with --depth 1"
            )
        module.write({nbest.utt: nbest.hyps[0].text for nbest in nbests if nbest.hyps}, path)

    return Format(about, recognises, read, write, lists=False)


FORMATS = {
    "jsonl": format_of(jsonl, "one utterance a line with reference, hypotheses and their scores"),
    "kaldi-nbest": format_of(
        kaldi_nbest,
        "Kaldi's archives of N-best rescoring, a directory, or one archive of texts such as ark:-",
    ),
    "espnet2": format_of(espnet2, "ESPnet2 decode directory with {n}best_recog/text and score"),
    "espnet1": format_of(espnet1, "ESPnet1 data.json with the hypotheses under output"),
    "mlm": format_of(mlm, "mlm-scoring: am.json or lm.json"),
    "icefall": format_of(icefall, "icefall recogs: `id:TAB ref=[...]`, `id:TAB hyp=[...]`"),
    "moses": format_of(moses, "Moses: `id ||| text ||| LM0= -41.3 TM0= -6.7 -1.2 ||| total`"),
    "marian": format_of(
        marian, "Marian: `id ||| text ||| F0= -2.1 ||| total`, alignments and word scores between"
    ),
    "fairseq": format_of(fairseq, "fairseq-generate's log: S, T, H, D and P lines"),
    "srilm": format_of(
        srilm, "SRILM: a file an utterance or a directory of them, headerless, NBestList1.0 or 2.0"
    ),
    "systems": format_of(
        systems,
        "outputs of several systems, plain text, one line an utterance: `a.txt,b.txt` or a"
        " directory",
    ),
    "hyporadise": format_of(hyporadise, "HyPoradise json: input, output, am_score or score"),
    "whisper": format_of(
        whisper,
        "a small JSON for Whisper, CTranslate2 and Hugging Face generate, see"
        " lmtools/formats/whisper.py",
    ),
    "trn": one_best(
        trn,
        "sclite: words, then the id in parentheses; one hypothesis an utterance",
        trn.recognises,
    ),
    "ctm": replace(
        format_of(ctm, "sclite: `utt channel start duration word`; one hypothesis an utterance"),
        lists=False,
    ),
    "kaldi-text": one_best(
        kaldi_text, "`utt w1 w2 ...`; one hypothesis an utterance", lambda path, first: False
    ),
}


def detect(path, default: str | None = None) -> str:
    """The name of the N-best format of `path`, or `default` if none recognises it; UserError if
    that is None too.
    """
    return registry.detect(path, FORMATS, default)


def read(path, spec: str | None = None) -> list[NBest]:
    """The N-best lists in `path`, in the format `spec` (NAME or NAME:option=value; None: the one
    that recognises the path).
    """
    return list(stream(path, spec))


def stream(path, spec: str | None = None) -> Iterator[NBest]:
    """The same one by one, as soon as they can be read."""
    yield from registry.find_format(spec or detect(path), FORMATS).read(path)


def write(nbests: Iterable[NBest], path, spec: str) -> None:
    """Write `nbests` to `path` in the format `spec`."""
    registry.find_format(spec, FORMATS).write(nbests, path)
