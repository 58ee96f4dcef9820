"""How files begin that hold no text, and what they are."""

import re
from collections.abc import Mapping

SOUND = {
    rb"RIFF.{4}WAVE|RF64": "WAV", rb"fLaC[\0\x80]": "FLAC", rb"OggS\0": "Ogg",
    rb"NIST_1A": "SPHERE",
    rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]": "MP3", rb"FORM.{4}AIF": "AIFF",
    rb"\0\0.{2}ftyp": "MP4 or M4A", rb"\x1aE\xdf\xa3": "Matroska or WebM",
}  # fmt: skip
OTHERS = {
    rb"mmap lm http://kheafield": "KenLM's binary of a language model, which goes to --lm",
    rb".{4}\0{4}\{\"": "weights of a neural network (safetensors), whose directory goes to --lm",
    rb"PK\x03\x04.{26}[^\n]{0,99}\.npy|\x93NUMPY": "NumPy's arrays",
    rb"PK\x03\x04.{26}[^\n]{0,99}data\.pkl": "weights of PyTorch",
    rb"PK\x03\x04.{26}(?:\[Content_Types|mimetype)": "an office document",
    rb"SQLite format 3\0": "a database (SQLite)",
    rb"\x80[\x02-\x05]": "a pickle of Python",
    rb"\x89HDF": "an HDF5 file",
    rb"\x7fELF": "a program",
    rb"%PDF-": "a PDF document",
    rb"PAR1\x15": "a table (Parquet)",
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP": "a picture",
    rb".{257}ustar": "a tar archive",
}
BINARY = {
    mark: f"a recording ({name}), which lmtools decode makes lists of"
    for mark, name in SOUND.items()
} | OTHERS
UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){8}|(?:\0[\t\n\r -~]){8}")


def name_binary(head: bytes, kinds: Mapping[bytes, str] = BINARY) -> str | None:
    """Return which of `kinds` of files begins with these bytes; None for text and all else."""
    return next((what for mark, what in kinds.items() if re.match(mark, head, re.DOTALL)), None)
