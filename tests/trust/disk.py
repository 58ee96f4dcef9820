"""No room for a verb's output: one line of path and remedy, the old output as it was, nothing
half-written; with room it succeeds.

A limit on the size of files stands for a quota, a small tmpfs (needs root) for a full disk,
/dev/full for a full standard output; it is closed, too.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import join, split

from trust.common import (
    Case,
    Done,
    Skipped,
    Started,
    Wrong,
    changes,
    drawn,
    lmtools,
    refused,
    run,
    snapshot,
    sound,
    succeeded,
)
from trust.damage import experiment, score
from trust.world import everything, rescoring, training


@dataclass(frozen=True)
class Writer:
    """A verb that writes: its arguments with OUT for the output, and what comes out."""

    args: tuple
    out: str = "OUT"


LATTICE = (*split("lattice rescore lattices --lm n=lm/ngram --weights am=1,lm=1,n=1 --device cpu"),)
LISTS = ("rescore", *rescoring("test")[1:-2])
VERBS = {  # what they write stands for OUT
    "subword": "subword --text train.txt --type word --out OUT",
    "subword-bpe": "subword --text train.txt --type bpe --vocab-size 60 --out OUT",
    "corpus": "corpus --text train.txt --subword words --out OUT",
    "ngram": "ngram --text train.txt --order 2 --out OUT",
    "score": "score --lm lm/ngram --nbest test.jsonl --cache none --out OUT",
    "mbr": "mbr --nbest test.jsonl --out OUT",
    "ppl": "ppl --lm lm/ngram --text valid.txt --cache none --out OUT",
    "sts": "sts --vectors vectors.npz --pairs pairs.tsv --out OUT",
    "tune": "tune --nbest dev.jsonl --out OUT",
    "evaluate": "evaluate --ref test.jsonl --hyp test.jsonl --out OUT",
    "evaluate-oracle": "evaluate --ref test.jsonl --hyp test.jsonl --oracle-out OUT",
    "convert": "convert test.jsonl OUT",
    "convert-directory": "convert test.jsonl OUT --to srilm",
    "convert-kaldi": "convert test.jsonl OUT --to kaldi-nbest",
    "lattices-nbest": "lattice nbest lattices --out OUT",
    "lattices-repair": "lattice info lattices --repair OUT",
    "lattices-kaldi": "convert lattices ark,t:OUT --format slf --to kaldi:words=words.ids",
    "oracle": "lattice oracle lattices --ref lattices.ref --out OUT",
}
EMBED = split("embed --lm lm/tta --text sentences.txt --cache none --device cpu --out OUT.npz")
REPORT = split("report exp --nbest data/dev/nbest.jsonl data/test/nbest.jsonl")
WRITERS: dict[str, Writer] = {
    **{name: Writer(tuple(split(words))) for name, words in VERBS.items()},
    "train": Writer(training("tta", "OUT")),
    "embed": Writer(tuple(EMBED), "OUT.npz"),
    "rescore": Writer((*LISTS, "--out", "OUT")),
    "rescore-lists": Writer((*LISTS, "--out", "/dev/null", "--nbest-out", "OUT")),
    "convert-gz": Writer(("convert", "test.jsonl", "OUT.gz"), "OUT.gz"),
    "convert-xz": Writer(("convert", "test.jsonl", "OUT.xz"), "OUT.xz"),
    "lattices": Writer((*LATTICE, "--out", "OUT", "--to", "slf")),
    "lattices-lists": Writer((*LATTICE, "--nbest-out", "OUT")),
    "lattices-text": Writer((*LATTICE, "--text-out", "OUT")),
    "lattices-report": Writer((*LATTICE, "--text-out", "/dev/null", "--report", "OUT")),
    "report": Writer(tuple(REPORT), "exp/report"),
}
IGNORED = (".cache", "case.run")


def named(writer: Writer, out: str) -> list[str]:
    return [arg.replace("OUT", out) if isinstance(arg, str) else arg for arg in writer.args]


def prepared(home: Path, name: str) -> None:
    everything(home)
    if name == "report":
        shutil.copytree(experiment(), home, dirs_exist_ok=True)
    if name == "lattices-kaldi":
        from toys import WORDS

        (home / "words.ids").write_text(
            "<eps> 0\n" + "".join(f"{word} {number}\n" for number, word in enumerate(WORDS, 1))
        )


def outputs(path: Path) -> list[int]:
    """The sizes of the files at `path`."""
    return [
        p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file()
    ]


def checked(done: Done, before: dict, home: Path, out: str, place: str) -> None:
    """Wrong unless the verb refused in one line with the path, and all is as it was."""
    sound(done)
    after = snapshot(home, IGNORED)
    if done.status == 0:
        raise done.wrong("accepted", "status 0 without room")
    found = changes(before, after)
    if done.args[0] == "train":  # it keeps what it has reached, and goes on from there
        found = [name for name in found if ".tmp" in name]
    if found:
        raise done.wrong("left behind", f"{place}: {found[:6]}")
    refused(done, out)


def quota(home: Path, name: str, draw: int, seed: int) -> None:
    """A limit on the size of files, under what the output takes."""
    writer, rng = WRITERS[name], drawn("disk", name, draw, seed)
    prepared(home, name)
    succeeded(run(*named(writer, "probe"), home=home))
    out = writer.out.replace("OUT", "probe")
    largest = max(outputs(home / out))
    limit = rng.choice((0, largest // 2, max(0, largest - 1))) if draw else largest // 2
    before = snapshot(home, IGNORED)
    # over an old output, and where there is none
    for target in ("probe", "fresh/new") if writer.out != "exp/report" else ("probe",):
        before = snapshot(home, IGNORED)
        if name == "train" and target == "probe":
            continue  # it is complete, and writes nothing
        done = run(*named(writer, target), home=home, file_size=limit)
        checked(
            done,
            before,
            home,
            writer.out.replace("OUT", target).split("/")[-1],
            f"limit of {limit} bytes",
        )
        succeeded(run(*named(writer, target), home=home))
        same(home, name, out, writer.out.replace("OUT", target))


def same(home: Path, name: str, left: str, right: str) -> None:
    """The output after a failure is what it is without."""
    if name in ("report", "lattices-report", "train") or left == right:  # with times in them
        return
    if (home / left).is_file() and (home / left).read_bytes() != (home / right).read_bytes():
        raise Wrong("silent change", f"{right} after a failure is not {left}")


@contextlib.contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[None]:
    place.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise Skipped("there is no mount") from None
    if mounted.returncode:
        raise Skipped(f"a tmpfs cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def full(home: Path, name: str, draw: int, seed: int) -> None:
    """A small disk that is filled up to less than what the output takes."""
    writer, rng = WRITERS[name], drawn("full", name, draw, seed)
    if writer.out == "exp/report":
        raise Skipped("reports are written beside their experiment")
    prepared(home, name)
    succeeded(run(*named(writer, "probe"), home=home))
    size = sum(
        -(-bytes_ // 4096) * 4096 for bytes_ in outputs(home / writer.out.replace("OUT", "probe"))
    )
    with small_disk(home / "disk", 64 + 3 * size // 1024):
        out = writer.out.replace("OUT", "disk/o")
        rest = rng.choice((0, 4096 * rng.randrange(max(1, size // 4096))))
        fill(home / "disk", rest)
        before = snapshot(home / "disk", ("full",))
        done = run(*named(writer, "disk/o"), home=home)
        sound(done)
        if done.status == 0:
            if size > rest:
                raise done.wrong("accepted", f"status 0 with {rest} bytes of room for {size}")
        else:
            after = snapshot(home / "disk", ("full",))
            if after != before and name != "train":
                raise done.wrong("left behind", f"{changes(before, after)[:6]}")
            refused(done, "disk")
        os.unlink(home / "disk/full")
        succeeded(run(*named(writer, "disk/o"), home=home))
        same(home, name, writer.out.replace("OUT", "probe"), out)


def fill(disk: Path, rest: int) -> None:
    """Leave `rest` bytes of room."""
    with open(disk / "full", "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(bytes(4096)):
            pass
    os.truncate(disk / "full", max(0, (disk / "full").stat().st_size - rest))


def full_cache(home: Path, verb: str) -> None:
    """Room for the output, none for the cache: the verb goes on without, and says so."""
    everything(home)
    commands = {
        "score": (*split("score --lm lm/causal --nbest test.jsonl --device cpu --out o"),),
        "embed": (*split("embed --lm lm/tta --text sentences.txt --device cpu --out o.npz"),),
    }
    succeeded(run(*commands[verb], "--cache", "none", home=home))
    out = home / commands[verb][-1]
    right = out.read_bytes()
    out.unlink()
    for room in (0, 24, 48):
        with small_disk(home / f"disk{room}", 64):
            fill(home / f"disk{room}", room * 1024)
            done = sound(run(*commands[verb], "--cache", f"disk{room}", home=home))
            if done.status:
                raise done.wrong("lost", f"only the cache is full: {done.err.strip()[-300:]}")
        if verb == "score" and out.read_bytes() != right:
            raise done.wrong("silent change")


OUTPUTS = {
    "tune": ("tune", "--nbest", "dev.jsonl", "--out", "-"),
    "rescore": (*LISTS, "--out", "-"),
    "convert": ("convert", "test.jsonl", "-"),
    "score": (*score("lm/ngram"), "--out", "-"),
    "ppl": ("ppl", "--lm", "lm/ngram", "--text", "valid.txt", "--cache", "none"),
    "evaluate": ("evaluate", "--ref", "test.jsonl", "--hyp", "test.jsonl"),
    "doctor": ("doctor", "--nbest", "test.jsonl"),
    "info": ("lattice", "info", "lattices"),
}


def full_output(home: Path, verb: str) -> None:
    """Standard output that takes nothing."""
    everything(home)
    done = sound(run(*OUTPUTS[verb], home=home, out="/dev/full"))
    if done.status == 0:
        raise done.wrong("accepted", "status 0 though nothing could be printed")


def closed_output(home: Path, verb: str) -> None:
    """Standard streams that are closed: all goes as where they lead nowhere."""
    everything(home)
    statuses = []
    for how in ("< /dev/null > /dev/null", "<&- >&-", "<&- >&- 2>&-"):
        done = Started(["sh", "-c", f"{join(lmtools(*OUTPUTS[verb]))} {how}"], home).done()
        statuses.append(sound(done).status)
    if len(set(statuses)) > 1:
        raise done.wrong("wrong status", f"{statuses}")


def unwritable(home: Path, name: str) -> None:
    """An output below a file, and one that is a directory of something else."""
    writer = WRITERS[name]
    if writer.out == "exp/report":
        raise Skipped("reports are written beside their experiment")
    prepared(home, name)
    (home / "file").write_text("mine\n")
    (home / "mine").mkdir()
    (home / "mine/kept").write_text("kept\n")
    before = snapshot(home, IGNORED)
    for target in ("file/o", "mine"):
        out = writer.out.replace("OUT", target)
        if target == "mine" and out != "mine":
            continue
        done = run(*named(writer, target), home=home)
        sound(done)
        if done.status == 0 and name != "train":
            raise done.wrong("accepted", f"wrote to {out}")
        if (
            (home / "mine/kept").read_text() != "kept\n"
            or (home / "file").read_text() != "mine\n"
            or (name != "train" and changes(before, snapshot(home, IGNORED)))
        ):
            raise done.wrong("left behind", f"{changes(before, snapshot(home, IGNORED))[:5]}")


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each verb that writes, by each kind of want."""
    for name in WRITERS:
        for draw in range(8 if size == "long" else 1):
            if size != "short" or name in ("train", "convert-gz", "lattices", "score"):
                yield Case.of(f"quota-{name}-{draw}", quota, name, draw, seed)
            if size != "short" or name in ("ngram", "tune"):
                yield Case.of(f"full-{name}-{draw}", full, name, draw, seed)
    kinds = {
        "unwritable": (unwritable, WRITERS),
        "cache": (full_cache, ("score", "embed")),
        "output": (full_output, OUTPUTS),
        "closed": (closed_output, OUTPUTS),
    }
    short = ("unwritable-rescore", "cache-score", "output-tune", "output-doctor")
    yield from Case.all(kinds, size, short)
