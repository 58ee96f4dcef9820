"""ARPA files of any dialect as those that KenLM reads, or as its binary form."""

import tempfile
from pathlib import Path

from lmtools.base.atomic import atomic_path, atomic_text, is_stream
from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS
from lmtools.ngram import arrays
from lmtools.ngram.backoff import BackoffModel
from lmtools.ngram.derived import no_ngrams
from lmtools.ngram.kenlm import SCRIPT, binarise, find_program
from lmtools.ngram.kenlm_files import binary
from lmtools.ngram.sentences import EOS, SYMBOLS, UNK

BINARIES = (".bin", ".binary", ".klm", ".kenlm", ".mmap")


def convert(path, out, kenlm: str = "auto") -> tuple[BackoffModel, list[str]]:
    """Write the ARPA file `path` to `out`: by its suffix as ARPA (.arpa, .lm, maybe compressed) or
    as KenLM's binary form (BINARIES); the model, and what it lacks in words.

    Probabilities are those that SRILM reads from the file: <s> comes first if it is listed or not,
    and a word that the file does not list has none.
    """
    program = check_names(path, out, kenlm)
    ids = arrays.new_vocabulary()
    model = arrays.read_arpa(path, ids)
    model.add_endings()
    if program is None:
        with atomic_text(out) as stream:
            arrays.write_arpa(stream.buffer, model, ids)
    else:
        with (
            atomic_path(out) as temporary,
            tempfile.NamedTemporaryFile(dir=temporary.parent) as arpa,
        ):
            arrays.write_arpa(arpa, model, ids)
            arpa.flush()
            binarise(program, Path(arpa.name), temporary)
    return model, [
        f"{path}: lists no {SYMBOLS[i]}: {what}"
        for i, what in (
            (UNK, "a closed vocabulary, unknown words have no probability"),
            (EOS, "the end of a sentence has no probability"),
        )
        if not model.levels[0].prob[i]
    ]


def check_names(path, out, kenlm: str) -> Path | None:
    """Return build_binary where `out` is to be KenLM's binary form, else None; UserError for what
    is not read or not written.
    """
    if Path(path).is_dir():
        raise UserError(f"{path}: a directory; lmtools export --to arpa writes its ARPA file")
    if str(path) != "-" and binary(Path(path)):
        raise no_ngrams(path)
    name = Path(str(out))
    suffix = name.with_suffix("").suffix if name.suffix in OPENERS else name.suffix
    if suffix not in BINARIES:
        if suffix not in (".arpa", ".lm") and not is_stream(out):
            raise UserError(f"{out}: its suffix names no form; call it .arpa, .arpa.gz or .bin")
        return None
    if (program := find_program(kenlm)) is None:
        raise UserError(f"{out}: KenLM's form needs its build_binary; run {SCRIPT}, or write .arpa")
    return program
