"""KenLM's build_binary, which makes of an ARPA file one that loads at once."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lmtools.base.errors import UserError

PLACE = "LMTOOLS_KENLM"  # the environment variable that names KenLM's directory
INSTALLED = Path("tools/kenlm")  # where SCRIPT puts it, seen from the repository's root
SCRIPT = "utils/install_kenlm.sh"
PROGRAM = "build_binary"


def find_program(where: str = "auto") -> Path | None:
    """Return build_binary in directory `where` (or its bin), or for "auto" the one in the directory
    that PLACE names, INSTALLED below the working directory, or PATH; "none" finds none.

    UserError if a directory that the user names has it not.
    """
    if where == "none":
        return None
    named = [os.environ.get(PLACE), INSTALLED] if where == "auto" else [where]
    places = [str(Path(place, part)) for place in named if place for part in ("", "bin")]
    for path in [*places, None] if where == "auto" else places:  # None: PATH
        if program := shutil.which(PROGRAM, path=path):
            return Path(program).absolute()
    if where != "auto":
        raise UserError(f"{where}: has no {PROGRAM}; run {SCRIPT} {where}, or leave --kenlm out")
    return None


def binarise(
    program: Path, arpa: Path, binary: Path, form: str = "probing", options: Sequence[str] = ()
) -> None:
    """Write `arpa` as a KenLM binary file by `program`; `form` is probing (fastest) or trie
    (smallest), with more `options` of build_binary. UserError where it fails.
    """
    room = ["-T", f"{binary.parent}/", "-S", f"{1 << 30}b"]
    done = subprocess.run(
        [program, *options, *room, form, arpa, binary],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        cause = lines[-1] if lines else "no message"
        cause = "it was killed, perhaps for want of memory" if done.returncode == -9 else cause
        raise UserError(
            f"{PROGRAM} failed (status {done.returncode}): {cause}; check memory and disk, or give"
            " --kenlm none"
        )
