"""Small files that become large: one line in bounded time and memory, or what is right."""

import functools
import gzip
import io
import json
import lzma
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split

from trust.common import OVERHEAD, Case, Done, Wrong, patience, run, sound, succeeded
from trust.world import World, rescoring, take, training

SECONDS = 60.0
# bytes of address space beyond which a verb gets no more, so that the machine survives it
SPACE = 6 << 30
LISTS = (
    "jsonl", "icefall", "moses", "marian", "fairseq", "srilm",
    "systems", "hyporadise", "whisper", "vosk", "nemo", "wenet", "cloud", "sherpa-onnx",
    "trn", "ctm", "stm", "kaldi-text",
)  # fmt: skip
LATTICES = ("kaldi", "slf", "pocketsphinx", "plf", "openfst", "wcn")
PAIRS = ("stsb", "glue", "sick", "tsv")


@functools.cache
def zeros(packer: str, size: int = 1 << 30) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1)
        if packer == "gz"
        else lzma.open(out, "wb", preset=0)
    ) as stream:
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))
    return out.getvalue()


def bounded(done: Done, size: int = 0) -> Done:
    """`done`, if it ended soundly within its memory."""
    return sound(done, memory=OVERHEAD + size)


READERS = {  # commands that read a file, by its format; another one is converted
    "subword": "subword --text {} --type word --out o",
    "subword-bpe": "subword --text {} --type bpe --vocab-size 60 --out o",
    "corpus": "corpus --text {} --subword words --out o.bin",
    "ngram": "ngram --text {} --order 2 --out o",
    "ppl": "ppl --lm lm/ngram --text {} --cache none",
    "embed": "embed --lm lm/tta --text {} --cache none --device cpu --out o.npz",
    "wordlist": "subword --model {} --out o",
    "scores": "rescore --nbest test.jsonl --scores ng={} tta=test.tta.scores"
    " --weights weights.json --out h",
    "detected": "convert {} o.jsonl",
    "doctor": "doctor --nbest {}",
    "ref": "convert test.jsonl o.jsonl --ref {}",
    "arpa": "score --lm {} --nbest test.jsonl --cache none --out s",
    "score": "score --lm lm/causal --nbest {} --format jsonl --cache none --device cpu --out s",
    "evaluate": "evaluate --ref test.jsonl --hyp {}",
}
TEXTS = tuple(READERS)


def reading(form: str, path: str) -> tuple:
    """The command that reads a file in that format."""
    command = READERS.get(form, f"convert {{}} o.jsonl --format {form}")
    if form in LATTICES:
        words = ":words=words.txt" if form == "kaldi" else ""
        command = f"lattice info {{}} --format {form}{words}"
    if form in PAIRS:
        command = f"sts --vectors vectors.npz --pairs {{}} --format {form} --out o.json"
    return tuple(split(command.format(path)))


NEEDS = (
    "test.jsonl", "test.tta.scores", "weights.json", "words", "lm/ngram", "lm/tta", "lm/causal",
    "vectors.npz",
)  # fmt: skip


def watched(home: Path, args: tuple) -> Done:
    """Run within bounds of time and memory."""
    done = run(*args, home=home, seconds=patience(SECONDS), memory=SPACE)
    if args[0] == "doctor" and done.status == 1 and "Traceback" not in done.err:
        done.status, done.err = 0, done.err[: 2 << 20]
    return done


def gzipped(home: Path, packer: str, form: str) -> None:
    """1 GB of zeros, packed to a megabyte."""
    take(home, *NEEDS)
    (home / "words.txt").write_text("<eps> 0\n")
    (home / f"x.{packer}").write_bytes(zeros(packer))
    bounded(watched(home, reading(form, f"x.{packer}")))


def long_line(home: Path, form: str, megabytes: int = 200) -> None:
    """One line of so many megabytes, of words or of one word."""
    take(home, *NEEDS)
    (home / "words.txt").write_text("<eps> 0\n")
    begin, end = {
        "jsonl": ('{"utt": "u", "hyps": [{"text": "', '"}]}'),
        "score": ('{"utt": "u", "hyps": [{"text": "', '"}]}'),
    }.get(form, ("u1 ", ""))
    with open(home / "x", "w") as stream:
        stream.write(begin)
        for _ in range(megabytes):
            stream.write("king " * ((1 << 20) // 5) if form not in ("arpa",) else "x" * (1 << 20))
        stream.write(f"{end}\n")
    bounded(watched(home, reading(form, "x")))


DEEP = {
    "list": lambda n: "[" * n,
    "object": lambda n: '{"a":' * n,
    "closed": lambda n: "[" * n + "]" * n,
    "tuple": lambda n: "(" * n,
}


def deep(home: Path, form: str, kind: str, depth: str) -> None:
    brackets = DEEP[kind](int(depth))
    take(home, *NEEDS)
    (home / "x").write_text(f"{brackets}\n")
    if form == "weights":
        args = (*rescoring("test")[:-4], "--weights", "x", "--out", "h")
        take(home, "test.ngram.scores")
    elif form == "header":
        (home / "x").write_text(f"# lmtools-scores {brackets}\n")
        args = reading("scores", "x")
    elif form == "jsonl-inside":
        line = f'{{"utt": "u", "hyps": [{{"text": "a", "extra": {brackets}}}]}}'
        (home / "x").write_text(f"{line}\n")
        args = reading("jsonl", "x")
    else:
        args = reading(form, "x")
    bounded(watched(home, args))


YAML = {
    "deep-list": lambda: "arch: " + "[" * 20000,
    "deep-map": lambda: "arch: " + "{a: " * 20000,
    "closed": lambda: "arch: " + "[" * 3000 + "]" * 3000,
    "laughs": lambda: "".join(
        f"a{n}: &a{n} [{', '.join(['*a' + str(n - 1)] * 9 if n else ['lol'] * 9)}]\n"
        for n in range(10)
    ),
    "merge": (
        lambda: (
            "a0: &a0 {x: 1}\n"
            + "".join(
                f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], y{n}: 1}}\n"
                for n in range(1, 12)
            )
        )
    ),
    "pipe": lambda: "base: pipe.yaml",
    "self": lambda: "arch: &a [*a]",
    "long": lambda: "arch: " + "x" * (30 << 20),
    "number": lambda: "steps: " + "9" * 100000,
    "indent": lambda: indented(),
    "float": lambda: "steps: 1e999999999",
    "sexagesimal": lambda: "steps: " + "1:" * 20000 + "1",
}


def indented() -> str:
    """Mappings in mappings, a line each."""
    return "".join(f"{' ' * n}a:\n" for n in range(3000))


def yaml(home: Path, name: str, where: str) -> None:
    """A YAML file that is deep or multiplies itself."""
    take(home, *NEEDS, "train.bin", "valid.bin", "train.txt")
    targets = {
        "conf": (
            "own.yaml",
            (
                *split("train --conf own.yaml --train train.bin --valid valid.bin --out run"),
                *split("--device cpu steps=1"),
            ),
        ),
        "model": ("lm/causal/config.yaml", reading("score", "test.jsonl")),
        "normaliser": (
            "words/normaliser.yaml",
            ("corpus", "--text", "train.txt", "--subword", "words", "--out", "b"),
        ),
        "experiment": (
            "e.yaml",
            split("tune --experiment e.yaml --nbest test.jsonl --scores {column} --out o/{system}"),
        ),
    }
    file, args = targets[where]
    os.mkfifo(home / "pipe.yaml")
    (home / file).write_text(YAML[name]() + "\n")
    bounded(watched(home, args))


ARPA = "\\data\\\nngram 1={count}\n\n\\1-grams:\n-1 <unk>\n-1 <s> 0\n-1 </s>\n-1 the\n\n\\end\\\n"

NUMBERS = {
    "negative": "-2",
    "superscript": "²",
    "wide": "４",
    "underscore": "1_0",
    "64-bits": str(2**64 - 1),
    "30-digits": "9" * 30,
    "5000-digits": "9" * 5000,
}
BIGRAMS = ARPA.replace("\n\n\\1", "\nngram 2={second}\n\n\\1").replace(
    "\n\n\\e", "\n\n\\2-grams:\n\n\\e"
)
COUNTING = {
    "score": reading("arpa", "x.arpa"),
    "prune": split("ngram prune x.arpa --threshold 0 --kenlm none --out o"),
    "mix": split("ngram mix x.arpa x.arpa --mix 0.5 --kenlm none --out o"),
    "convert": split("ngram convert x.arpa o.arpa"),
}


def numbers(home: Path, verb: str, name: str) -> None:
    """An ARPA file with a number of n-grams that is none, or none of it."""
    take(home, *NEEDS)
    number = NUMBERS[name]
    text = BIGRAMS.format(count=4, second=number)
    (home / "x.arpa").write_text(text, encoding="utf-8")
    bounded(watched(home, COUNTING[verb]))


def list_claims(home: Path) -> dict[str, tuple[str, bytes | Callable[[], bytes], tuple]]:
    """Files whose headers claim more than there is, by name: the file, its bytes, who reads it."""
    weights, corpus = "lm/causal/model.safetensors", (home / "train.bin").read_bytes
    scoring = reading("score", "test.jsonl")
    vectors = ("sts", "--vectors", "vectors.npz", "--pairs", "pairs.tsv", "--out", "o.json")
    train = training("tta", "run")
    shape = (
        b'{"x": {"dtype": "F32", "shape": [1099511627776, 1024], "data_offsets": [0,'
        b" 4503599627370496]}}"
    )
    tall = 1 << 40
    return {
        "arpa-count": ("x.arpa", ARPA.format(count=10**15).encode(), reading("arpa", "x.arpa")),
        "arpa-digits": (
            "x.arpa", ARPA.format(count="9" * 5000).encode(), reading("arpa", "x.arpa"),
        ),
        "arpa-orders": (
            "x.arpa",
            ("\\data\\\n" + "".join(f"ngram {n}=1\n" for n in range(1, 100000))).encode(),
            reading("arpa", "x.arpa"),
        ),
        "arpa-negative": ("x.arpa", ARPA.format(count=-1).encode(), reading("arpa", "x.arpa")),
        "safetensors-header": (weights, struct.pack("<Q", 1 << 50) + b"{}", scoring),
        "safetensors-shape": (weights, struct.pack("<Q", len(shape)) + shape, scoring),
        "safetensors-deep": (weights, struct.pack("<Q", 1 << 20) + b"[" * (1 << 20), scoring),
        "npz-shape": ("vectors.npz", lambda: npz(npy(f"({tall}, 1024)")), vectors),
        "npz-zeros": ("vectors.npz", lambda: npz(npy("(268435456,)") + bytes(1 << 30)), vectors),
        "npz-header": (
            "vectors.npz", lambda: npz(b"\x93NUMPY\x02\x00" + struct.pack("<I", (1 << 32) - 1)),
            vectors,
        ),
        "kaldi-count": (
            "nb/acwt", b"u1-1 \0B\x04\xff\xff\xff\x7f",
            ("convert", "nb", "o.jsonl", "--format", "kaldi-nbest"),
        ),
        "kaldi-list": (
            "nb/ali", b"u1-1 \0B\x04\xff\xff\xff\x7f",
            ("convert", "nb", "o.jsonl", "--format", "kaldi-nbest"),
        ),
        "kaldi-lattice": (
            "x.lat", b"u1 \0B" + struct.pack("<ii", 2125659606, 0x7FFFFFFF) + b"vector",
            reading("kaldi", "x.lat"),
        ),
        "slf-states": (
            "x.slf",
            b"VERSION=1.0\nN=1000000000 L=1000000000\nI=0\nI=999999999\nJ=0 S=0 E=999999999 W=a\n",
            reading("slf", "x.slf"),
        ),
        "slf-scores": (
            "x.slf",
            b"VERSION=1.0\nN=3 L=2\nI=0\nI=1\nI=2\nJ=0 S=0 E=1 a=1e308\nJ=1 S=1 E=2 a=1e308\n",
            reading("slf", "x.slf"),
        ),
        "openfst-states": (
            "x.fst", b"0 999999999 a a 0.5\n999999999\n", reading("openfst", "x.fst"),
        ),
        "openfst-digits": (
            "x.fst", b"0 " + b"9" * 5000 + b" a a 0.5\n", reading("openfst", "x.fst"),
        ),
        "pocketsphinx-nodes": (
            "x.lat", b"Frames 999999999\nNodes 999999999\n0 <s> 0 3 3\n",
            reading("pocketsphinx", "x.lat"),
        ),
        "wcn-slots": ("x.wcn", b"a:999999999:1\n", reading("wcn", "x.wcn")),
        "plf-distance": ("x.plf", b"((('a', -0.7, 999999999),),)\n", reading("plf", "x.plf")),
        "scores-rank": (
            "x.scores", b'# lmtools-scores {"lm": "x"}\nu001#999999999\t-7.5\t4\n',
            reading("scores", "x.scores"),
        ),
        "scores-digits": (
            "x.scores", b'# lmtools-scores {"lm": "x"}\nu001#1\t-' + b"9" * 100000 + b"\t4\n",
            reading("scores", "x.scores"),
        ),
        "moses-numbers": (
            "x", b"0 ||| a ||| d: 0 ||| -1\n999999999 ||| a ||| d: 0 ||| -1\n",
            reading("moses", "x"),
        ),
        "fairseq-numbers": (
            "x", b"H-0\t-0.4\ta\nH-999999999999\t-0.4\ta\n", reading("fairseq", "x"),
        ),
        "wordlist-ids": ("x", b"a 0\nb 999999999999\n", reading("wordlist", "x")),
        "corpus-cut": ("train.bin", lambda: corpus()[:3000], train),
        "corpus-header": (
            "train.bin",
            lambda: corpus()[:8] + b"\xff" * 8 + corpus()[16:],
            train,
        ),
        "json-number": (
            "x",
            b'{"utt": "u", "hyps": [{"text": "a", "scores": {"am": ' + b"9" * 200000 + b"}}]}\n",
            reading("jsonl", "x"),
        ),
        "json-exponent": (
            "x", b'{"utt": "u", "hyps": [{"text": "a", "scores": {"am": 1e999999999}}]}\n',
            reading("jsonl", "x"),
        ),
        "many-hypotheses": ("x", lambda: many(), ("mbr", "--nbest", "x", "--out", "o")),
    }  # fmt: skip


def claims(home: Path, name: str) -> None:
    take(home, *NEEDS, "train.bin", "valid.bin", "test.ngram.scores", "pairs.tsv")
    (home / "words.txt").write_text("<eps> 0\na 1\n")
    (home / "x").write_text("king\n")
    file, data, args = list_claims(home)[name]
    if file.startswith("nb/"):
        (home / "nb").mkdir()
        for other, text in {
            "words_text": "u1-1 a\n",
            "acwt": "u1-1 1\n",
            "lmwt.nolm": "u1-1 1\n",
        }.items():
            (home / "nb" / other).write_text(text)
    (home / file).write_bytes(data() if callable(data) else data)
    bounded(watched(home, args))


def npy(shape: str) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def npz(member: bytes) -> bytes:
    """An archive of vectors whose array is `member`."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(World.get() / "vectors.npz") as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, member if name == "vectors.npy" else old.read(name))
    return out.getvalue()


def many() -> bytes:
    """A list of 3,000 hypotheses of 40 words."""
    hyps = [
        {"text": " ".join(f"w{(n * k) % 97}" for k in range(1, 41)), "scores": {"am": -n}}
        for n in range(3000)
    ]
    return (json.dumps({"utt": "u", "ref": "w1", "hyps": hyps}) + "\n").encode()


def cache(home: Path, name: str) -> None:
    """A file among the segments of a cache that promises more than it holds, or is none."""
    take(home, *NEEDS)
    args = (*split("score --lm lm/causal --nbest test.jsonl --cache kept --device cpu --out s"),)
    succeeded(run(*args, home=home))
    (segment,) = home.glob("kept/scores/*/*.segment")
    content, file = segment.read_bytes(), segment.with_name(f"{'0' * 32}.segment")
    if name == "directory":
        file.mkdir()
    elif name == "link":
        file.symlink_to("/dev/zero")
    elif name == "pipe":
        os.mkfifo(file)
    else:
        rows, width = struct.unpack_from("<QQ", content, 16)
        head = {"rows": (1 << 60, width), "values": (rows, 1 << 60), "sparse": (1 << 34, 8)}
        file.write_bytes(content[:16] + struct.pack("<QQ", *head.get(name, (rows, width))))
        with open(file, "r+b") as stream:
            if name == "sparse":
                stream.truncate(32 + (1 << 34) * 48)
            else:
                stream.seek(32)
                stream.write(bytes(len(content) - 32))
    done = bounded(watched(home, args))
    if (
        done.status == 0
        and (home / "s").read_bytes() != (World.get() / "test.causal.scores").read_bytes()
    ):
        raise Wrong("silent change", f"a cache with a hostile {name} gives other scores")


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each bomb for each reader; a handful in the short campaign."""
    forms = (*LISTS, *LATTICES, *PAIRS, *TEXTS)
    nested = "jsonl jsonl-inside whisper hyporadise weights header plf detected"
    kinds = {
        "zeros": (gzipped, ("gz", "xz") if size == "long" else ("gz",), forms),
        "line": (long_line, forms),
        "deep": (deep, split(nested), DEEP, ("2000", "3000000")),
        "yaml": (yaml, YAML, ("conf", "model", "normaliser", "experiment")),
        "claims": (claims, list_claims(Path())),
        "numbers": (numbers, COUNTING, NUMBERS),
        "cache": (cache, split("rows values sparse zeros directory link pipe")),
    }
    return Case.all(kinds, size, SHORT)


SHORT = {
    "zeros-gz-slf", "line-score", "deep-weights-list-2000", "deep-jsonl-inside-list-3000000",
    "yaml-deep-list-conf", "yaml-laughs-conf", "yaml-laughs-experiment", "claims-arpa-count",
    "numbers-score-negative", "numbers-prune-superscript",
    "claims-safetensors-header", "claims-npz-shape", "cache-rows", "cache-pipe",
}  # fmt: skip
