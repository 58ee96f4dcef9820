"""N-best list formats: FORMATS names them, and each reads to and writes from NBest.

A new format is a module in `nbest/` (or an entry in `json_lists/`) and one line in FORMATS. Formats
that hold one text an utterance (trn, Kaldi text) read to and write from a dict; `one_best` makes
N-best formats of them. Lattice formats are in `lattices/`, those of sentence pairs in `pairs`.
"""

from collections.abc import Iterable
from types import ModuleType

from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.checks import check_nbests, only_hypothesis
from lmtools.formats.json_lists import JSON_FORMATS
from lmtools.formats.nbest import (
    ctm,
    espnet2,
    fairseq,
    icefall,
    kaldi_nbest,
    manifest,
    moses,
    nemo,
    srilm,
    stm,
    systems,
    trn,
    wenet,
)
from lmtools.formats.registry import Format, Formats, format_of
from lmtools.types import Hypothesis, NBest


def one_best(module: ModuleType) -> Format:
    """Return the N-best format of a `module` of one text an utterance, without scores."""

    def read(path) -> list[NBest]:
        return [NBest(utt, (Hypothesis(text),)) for utt, text in module.read(path).items()]

    def write(nbests: Iterable[NBest], path) -> None:
        hyps = {nbest.utt: only_hypothesis(nbest, path) for nbest in check_nbests(nbests, path)}
        module.write({utt: hyp.text for utt, hyp in hyps.items() if hyp}, path)

    return format_of(module, read=read, write=write, lists=False)


FORMATS = Formats(
    {
        "jsonl": format_of(jsonl),
        "kaldi-nbest": format_of(kaldi_nbest),
        "espnet2": format_of(espnet2),
        "icefall": format_of(icefall),
        "moses": moses.MOSES,
        "marian": moses.MARIAN,
        "fairseq": format_of(fairseq),
        "srilm": format_of(srilm),
        "systems": format_of(systems),
        **JSON_FORMATS,
        "nemo": format_of(nemo),
        "wenet": format_of(wenet),
        "trn": one_best(trn),
        "ctm": format_of(ctm, lists=False),
        "stm": format_of(stm, lists=False),
        "manifest": format_of(manifest, lists=False),
        "kaldi-text": one_best(kaldi_text),
    }
)

detect, read, stream, write = FORMATS.detect, FORMATS.read, FORMATS.stream, FORMATS.write
