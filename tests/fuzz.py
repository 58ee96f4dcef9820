"""Feeds every reader of formats, and what recognises formats, with damaged files: they must return
or raise a UserError of one line that names the path. Damage is a function of (format, seed, turn),
so that a turn can be run again by itself.
"""

import bz2
import contextlib
import gzip
import itertools
import lzma
import math
import random
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fuzz_seeds import SEEDS
from lattices import random_lattice

from lmtools import Arc, Final, Hypothesis, Lattice, NBest, UserError
from lmtools.base import doors
from lmtools.formats import FORMATS, registry, scores
from lmtools.formats.lattices import LATTICES
from lmtools.formats.texts import read_sentences, write_sentences
from lmtools.types import SentencePair

NETWORKS = doors.load("lmtools.networks.files:NETWORKS") if "networks" in doors.find_doors() else {}
PAIRS = doors.load("lmtools.vectors.pairs:PAIRS") if "vectors" in doors.find_doors() else {}

OPTIONS = {  # other ways to read a format
    "systems": ["ids=kaldi"], "fairseq": ["bpe=none", "normalised=no"],
    "moses": ["gaps=skip", "bpe=subword_nmt"],
    "marian": ["bpe=sentencepiece"],
    "hyporadise": ["score=none", "score=-am_score"], "nemo": ["width=2"],
    "slf": ["acoustic=target"], "openfst": ["acceptor=yes"], "wcn": ["missing=epsilon"],
    "sick": ["set=test"],
}  # fmt: skip
EVERY = FORMATS | LATTICES | PAIRS
COMPRESSORS = {
    ".gz": partial(gzip.compress, compresslevel=1),
    ".xz": partial(lzma.compress, preset=0),
    ".bz2": partial(bz2.compress, compresslevel=1),
}
# content by path below a directory; the empty path is that of a single file
Files = Mapping[str, bytes]
NASTY = [
    *("\ufeff", "\u2028", "\u3000", "\u0661", "\r", "\n", "\n\n", "\t", " ", "-", "|||", "="),
    *"()[]{}'\",:",
    *("", "nan", "inf", "-Infinity", "1e400", "-1", "0", "1.5", "1_0", "99999999999", "9" * 400,
    "\\ud83d", "null", "[" * 3000),
    *("1if", "\\d", "<eps>", "!NULL", "#0", "@@", b"\x00", b"\xff\xfe", b"\x80\x00\x00\x00",
    b"\xff" * 8),
]  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A reader, the ways to call it, and undamaged input for it."""

    name: str
    specs: tuple[str, ...]
    formats: Mapping[str, registry.Format]
    seeds: tuple[Files, ...]

    def read(self, path, spec: str) -> list:
        """What the reader makes of `path`."""
        return list(registry.find_format(spec, self.formats).read(path))


def targets() -> dict[str, Target]:
    """All readers by name, with what their writers make of toys and hand-made files."""
    others = {
        "plain": registry.Format("", lambda path, first: False, read_sentences, write_sentences),
        "scores": registry.Format(
            "",
            lambda path, first: False,
            lambda path: [scores.read(path)],
            lambda tables, path: None,
        ),
        **({"networks": NETWORKS["json"]} if NETWORKS else {}),
    }
    result = {}
    for formats, toys in (
        (FORMATS, nbest_toys()),
        (LATTICES, lattice_toys()),
        (PAIRS, pair_toys()),
        (others, []),
    ):
        for name in formats:
            seeds = [
                *SEEDS.get(name, []),
                *(files for toy in toys if (files := made(formats[name], toy))),
            ]
            seeds += published_pairs(name) if formats is PAIRS else []
            result[name] = Target(
                name,
                (name, *(f"{name}:{options}" for options in OPTIONS.get(name, ()))),
                formats,
                tuple(seeds),
            )
    return result


def nbest_toys() -> list[list[NBest]]:
    """Sets of lists, of which each format can hold some."""
    names = {"system:a": 1.0, "system:b": 0.0}
    systems = (
        Hypothesis("blue finch", names, {"system": "a"}),
        Hypothesis("blue", {"system:a": 0.0, "system:b": 1.0}, {"system": "b"}),
    )
    full = tuple(
        Hypothesis(text, {"am": -7.5, "lm": -3.25})
        for text in ("blue finch sings", "blue fins", "'s ▁x")
    )
    plain = tuple(Hypothesis(text, {"am": -7.5}) for text in ("blue finch sings", "blue fins"))
    return [
        [NBest("1", full, "blue finch"), NBest("2", full[:1], "")],
        [NBest("zed1", plain), NBest("zed2", plain[1:])],
        [NBest("zed1", (Hypothesis("blue finch"),)), NBest("zed2", (Hypothesis(""),))],
        [NBest("1", systems), NBest("2", systems)],
    ]  # fmt: skip


def lattice_toys() -> list[list[Lattice]]:
    """Sets of lattices, of which each format can hold some."""
    rng = random.Random(7)
    rich = [random_lattice(rng, 5, 8, epsilons=epsilons) for epsilons in (0.0, 0.3)]
    steps = [(0, 1, "a", 0.25), (0, 1, "b", 0.75), (1, 2, "c", 0.5), (1, 2, None, 0.5)]
    arcs = [
        Arc(source, target, word, {"am": math.log(posterior)})
        for source, target, word, posterior in steps
    ]
    sausage = Lattice.of("zed1", 3, 0, arcs, [Final(2)])
    return [
        [rich[0]],
        [rich[1]],
        [replace(sausage, utt="1")],
        [sausage, replace(sausage, utt="zed2")],
    ]


def pair_toys() -> list[list[SentencePair]]:
    """Sets of sentence pairs, of which each format can hold some."""
    labelled = [
        SentencePair('A "blue finch', "The finch sings .", 3.8),
        SentencePair("x", "y's z", 0.0),
    ]
    return [labelled, [SentencePair(pair.left, pair.right) for pair in labelled]]


def published_pairs(name: str) -> list[Files]:
    """Files as they are published, with columns that the writers do not write."""
    files = {
        "stsb": [
            "news\tMSRpar\t2012\t0001\t3.80\tblue finch\tfinch\thttp://x\t",
            "forums\ta\t2015\t2\t0\tx\ty",
        ],
        "glue": ["index\tgenre\tsentence1\tsentence2\tscore", "0\tnews\tblue finch\tfinch\t5.000"],
        "sick": [
            "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tSemEval_set",
            "1\tblue\tfinch\t1\tTRAIN",
            "2\tx\ty\t4.5\tTEST",
        ],
        "tsv": ["blue finch\tfinch\t3.8", "x\ty\t0"],
    }
    return [{"": "".join(f"{line}\n" for line in files[name]).encode()}]


def made(form_: registry.Format, toy: list) -> Files | None:
    """The files that a format's writer makes of `toy`, None if it cannot hold it."""
    with tempfile.TemporaryDirectory() as home:
        place = Path(home, "x")
        with contextlib.suppress(UserError):
            form_.write(toy, place)
            if place.is_dir():
                return {
                    str(file.relative_to(place)): file.read_bytes()
                    for file in sorted(place.rglob("*"))
                    if file.is_file()
                }
            return {"": place.read_bytes()}
    return None


def damaged(files: Files, rng: random.Random) -> Files:
    """`files` with one to five changes; now and then a file less, or a file for a directory."""
    result = dict(files)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        name = rng.choice(sorted(result))
        if len(result) > 1 and rng.random() < 0.05:
            del result[name]
            continue
        result[name] = changed(result[name], rng)
    return {"": next(iter(result.values()))} if rng.random() < 0.02 else result


def changed(data: bytes, rng: random.Random) -> bytes:
    """`data` with one change: to bytes, to tokens, to lines."""
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.8:
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return gzip.compress(changed(gzip.decompress(data), rng), mtime=0)
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    end = min(end, start + rng.choice((1, 2, 4, 8, 64)))
    match rng.randrange(9):
        case 0:
            return data[:start] + bytes(rng.randrange(256) for _ in range(end - start)) + data[end:]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:end] + data[start:]
        case 3:
            return data[:start]
        case 4:
            return data[:start] + nasty(rng) + data[rng.choice((start, end)) :]
        case 5 | 6:
            return retokened(data, rng)
    lines = data.split(b"\n")
    here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[here] = rng.choice(
        [lines[there], b"", lines[here] + lines[there], lines[here] + b"\n" + lines[there]]
    )
    return b"\n".join(lines)


def nasty(rng: random.Random) -> bytes:
    """Something that a reader may stumble over."""
    piece = rng.choice(NASTY)
    return piece.encode() if isinstance(piece, str) else piece


def retokened(data: bytes, rng: random.Random) -> bytes:
    """`data` with a token exchanged for another of the file or a nasty one."""
    separators = b" \t\n,:=|()[]{}'\"-"
    edges = [0, *(place for place, byte in enumerate(data) if byte in separators), len(data)]
    tokens = [
        (left + (left > 0), right)
        for left, right in itertools.pairwise(edges)
        if right > left + (left > 0)
    ]
    if not tokens:
        return data + nasty(rng)
    (start, end), (left, right) = rng.choice(tokens), rng.choice(tokens)
    return data[:start] + rng.choice([data[left:right], nasty(rng)]) + data[end:]


def laid(files: Files, home: Path, name: str = "zed1") -> Path:
    """The path below the directory `home`, called `name`, at which `files` are written."""
    place = home / name
    for inner, content in files.items():
        file = place / inner if inner else place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return place


def packed(files: Files, rng: random.Random) -> tuple[Files, str]:
    """The files and a name for their path; one may be compressed, misnamed, damaged."""
    if "" not in files or rng.random() < 0.6:
        return files, "zed1"
    suffix, other = rng.choice([*COMPRESSORS, ""]), rng.choice([*COMPRESSORS, ""])
    content = COMPRESSORS[suffix](files[""]) if suffix else files[""]
    match rng.randrange(4):
        case 0:
            content = content[: rng.randrange(len(content) + 1)]
        case 1:
            content = flipped(content, rng)
    return {"": content}, "zed1" + rng.choice(["", ".json", ".plf", ".slf", ".ctm"]) + rng.choice(
        [suffix, suffix, suffix, other]
    )


def flipped(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to three bits changed."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def complaint(function: Callable, where: Path, *args) -> str | None:
    """What is wrong with how `function` took damaged input; None if nothing is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            function(*args)
        except UserError as error:
            message = str(error)
            if (
                "\n" in message
                or "\r" in message
                or str(where) not in message
                or "; " not in message
            ):
                return f"not one line of path, cause and remedy: {message!r}"
        except Exception:
            return traceback.format_exc(limit=-3)
    return (
        f"warns: {caught[0].message} ({caught[0].filename}:{caught[0].lineno})" if caught else None
    )


def hangs(signum, frame):
    """Stop a reader that does not come back."""
    raise TimeoutError("no answer within 20 seconds")


def turn(target: Target, seed: int, number: int, home: Path) -> tuple[str, str, Files] | None:
    """(complaint, spec, files) of a turn; what could be read must be writable or refused."""
    rng = random.Random(f"{target.name} {seed} {number}")
    files = damaged(rng.choice(target.seeds), rng)
    spec = rng.choice(target.specs)
    files, name = packed(files, rng)
    path = laid(files, home, name)
    read: list = []
    wrong = complaint(lambda: read.extend(target.read(path, spec)), path) or recognising(
        target, path, rng
    )
    if not wrong and number % 8 == 0:
        wrong = complaint(lambda: target.formats[target.name].write(read, home / "out"), home)
    return (wrong, spec, files) if wrong else None


def recognising(target: Target, path: Path, rng: random.Random) -> str | None:
    """What is wrong with how `path` is recognised among `formats`, and read so."""
    formats = rng.choice([target.formats, EVERY])
    default = rng.choice([None, None, "plain"])
    found: list[str] = []
    wrong = complaint(lambda: found.append(registry.detect(path, formats, default)), path)
    return wrong or (
        complaint(lambda: list(formats[found[0]].read(path)), path)
        if found and found[0] in formats
        else None
    )


def turns(target: Target, seed: int, numbers: Iterable[int]) -> Iterator[str]:
    """A description of every failure."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as home:
            if found := turn(target, seed, number, Path(home)):
                wrong, spec, files = found
                yield (
                    f"{target.name}: seed {seed} turn {number}, read as {spec!r}: {wrong}\n "
                    f" {dict(files)!r}"
                )
