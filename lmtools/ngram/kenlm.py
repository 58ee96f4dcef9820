"""KenLM's programs: lmplz estimates from large text, build_binary makes a file that loads at
once.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.errors import UserError

PLACE = "LMTOOLS_KENLM"  # the environment variable that names KenLM's directory
INSTALLED = Path("tools/kenlm")  # where SCRIPT puts it, seen from the repository's root
SCRIPT = "utils/install_kenlm.sh"
STATISTIC = re.compile(r"^\d+ (\d+)(?:/\d+)? D1=(\S+) D2=(\S+) D3\+=(\S+)$", re.MULTILINE)
SUBSTITUTED = re.compile(r"^Substituting fallback discounts for order (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class KenlmPrograms:
    """Where lmplz and build_binary are."""

    lmplz: Path
    build_binary: Path

    @classmethod
    def find(cls, where: str = "auto") -> "KenlmPrograms | None":
        """Return the programs in directory `where` (or its bin), or for "auto" those in the
        directory that PLACE names, INSTALLED below the working directory, or PATH; "none" finds
        none.

        UserError if a directory that the user names has them not.
        """
        if where == "none":
            return None
        named = [os.environ.get(PLACE), INSTALLED] if where == "auto" else [where]
        places = [Path(place, part) for place in named if place for part in ("", "bin")]
        paths = [*map(str, places), *([None] if where == "auto" else [])]  # None: those of PATH
        for path in paths:
            found = [shutil.which(name, path=path) for name in ("lmplz", "build_binary")]
            if all(found):
                return cls(*(Path(program).absolute() for program in found))
        if where != "auto":
            raise UserError(
                f"{where}: has no lmplz and build_binary; run {SCRIPT} {where}, or leave"
                " --kenlm out"
            )
        return None

    def estimate(
        self,
        sentences: Iterable[list[str]],
        order: int,
        memory: int,
        arpa: Path,
        min_counts: Sequence[int] = (),
    ) -> tuple[Counter, "LmplzReport"]:
        """Write lmplz's model of `sentences` to `arpa`, with temporary files beside it; the
        occurrences of each word, and lmplz's report.

        `memory` is lmplz's -S in bytes; `min_counts` those of `kneser_ney.estimate`.
        """
        log = arpa.with_suffix(".log")
        command = [
            self.lmplz,
            "--order",
            str(order),
            "-S",
            f"{memory}b",
            "-T",
            f"{arpa.parent}/",
            "--discount_fallback",
            "--arpa",
            arpa,
            *(["--prune", *(str(least - 1) for least in min_counts)] if min_counts else []),
        ]
        with (
            open(log, "wb") as messages,
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=messages) as process,
        ):
            counts = feed_sentences(process, sentences)
        said = log.read_text(encoding="utf-8", errors="replace")
        log.unlink()
        if process.returncode:
            raise failure(
                "lmplz", process.returncode, said, "give another --memory, or --kenlm none"
            )
        return counts, LmplzReport.parse(said)

    def binarise(
        self,
        arpa: Path,
        binary: Path,
        form: str = "probing",
        memory: int = 1 << 30,
        more: Sequence[str] = (),
    ) -> None:
        """Write `arpa` as a KenLM binary file; `form` is probing (fastest) or trie (smallest), with
        `more` options of build_binary.
        """
        room = ["-T", f"{binary.parent}/", "-S", f"{memory}b"]
        command = [self.build_binary, *more, *room, form, arpa, binary]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise failure(
                "build_binary",
                done.returncode,
                done.stderr,
                "check memory and disk, or give --kenlm none",
            )


def feed_sentences(process: subprocess.Popen, sentences: Iterable[list[str]]) -> Counter:
    """Write `sentences` to the standard input of `process`, which is killed if they end in an
    error; the occurrences of each word.
    """
    counts = Counter()
    try:
        # where it ends early, its messages say why
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            for words in sentences:
                counts.update(words)
                stdin.write(f"{' '.join(words)}\n".encode())
    except BaseException:
        process.kill()
        raise
    return counts


@dataclass(frozen=True)
class LmplzReport:
    """Messages of lmplz on its model: the number of n-grams and D1, D2, D3+ an order, and the
    orders (from 1) with fallback discounts.
    """

    counts: list[int]
    discounts: list[list[float]]
    fallback: list[int]

    @classmethod
    def parse(cls, messages: str) -> "LmplzReport":
        """Return the report in lmplz's messages."""
        rows = STATISTIC.findall(messages)
        discounts = [[float(amount) for amount in amounts] for _, *amounts in rows]
        return cls(
            [int(number) for number, *_ in rows],
            discounts,
            [int(order) + 1 for order in SUBSTITUTED.findall(messages)],
        )


def failure(program: str, status: int, messages: str, remedy: str) -> UserError:
    """Return the error on a program that failed with `status`, from the last line of its
    `messages`.
    """
    lines = [line.strip() for line in messages.splitlines() if line.strip()] or ["no message"]
    cause = "it was killed, perhaps for want of memory" if status == -9 else lines[-1]
    return UserError(f"{program} failed (status {status}): {cause}; {remedy}")
