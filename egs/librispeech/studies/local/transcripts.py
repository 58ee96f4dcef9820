#!/usr/bin/env python3
"""transcripts.py ARCHIVE TEXT [AUDIO]: the transcripts of a LibriSpeech archive as one Kaldi text,
sorted by utterance, and its recordings in the directory AUDIO, where one is given, with the same
transcripts in AUDIO/text; nothing else of the archive is unpacked.
"""

import contextlib
import posixpath
import shutil
import sys
import tarfile
from pathlib import Path

from lmtools.base.atomic import atomic_binary, new_directory
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import unpacking


def transcripts(archive: Path, audio: Path | None) -> list:
    """Return lines `utterance words` of all *.trans.txt in the archive, whose recordings come into
    `audio` by their names alone; UserError if a member lies or points outside of it.
    """
    lines = []
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            if outside(member):
                raise UserError(
                    f"{archive}: refused, since its member '{member.name}' would leave the"
                    " directory; fetch it from its publisher"
                )
            if member.isfile() and member.name.endswith(".trans.txt"):
                lines += members.extractfile(member).read().decode("utf-8").splitlines()
            elif audio and member.isfile() and member.name.endswith(".flac"):
                path = audio / posixpath.basename(member.name)
                if path.exists():
                    raise UserError(
                        f"{archive}: two recordings {path.name!a} in it; fetch it again"
                    )
                with open(path, "wb") as recording:
                    shutil.copyfileobj(members.extractfile(member), recording)
    if not lines:
        raise UserError(f"{archive}: no *.trans.txt in it; is it a LibriSpeech archive?")
    return sorted(lines)


def outside(member: tarfile.TarInfo) -> bool:
    """Return whether a member's name or the target of its link is absolute or climbs out, or it is
    no file, directory or link at all.
    """
    paths = [member.name]
    if member.issym():
        paths.append(posixpath.join(posixpath.dirname(member.name), member.linkname))
    elif member.islnk():
        paths.append(member.linkname)
    special = not (member.isfile() or member.isdir() or member.issym() or member.islnk())
    return special or any(posixpath.normpath(path).split("/")[0] in ("", "..") for path in paths)


def main(archive: str, out: str, audio: str | None = None):
    """Write the transcripts of `archive` to `out` and its recordings to `audio`, whole or not at
    all.
    """
    with contextlib.ExitStack() as place, unpacking(Path(archive)):
        folder = place.enter_context(new_directory(Path(audio))) if audio else None
        lines = transcripts(Path(archive), folder)
        content = ("\n".join(lines) + "\n").encode()
        if folder:
            (folder / "text").write_bytes(content)
    with atomic_binary(Path(out)) as text:
        text.write(content)
    print(f"{out}: {len(lines)} utterances")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
