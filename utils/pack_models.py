#!/usr/bin/env python3
"""pack_models.py OUT ABOUT VALID TEXT... NAME=DIR...: a wheel, in directory OUT, of trained
language models, by the names that `--lm NAME` and `lmtools.load(NAME)` find.

Of a model what loads it is packed: settings, weights, subword model with its normaliser. The model
card, README.md beside the wheel and in it, begins with the Markdown file ABOUT, whose title is the
package's name, and has the models' perplexity on the text VALID, which they have not read, and the
digests of the files TEXT.
"""

import base64
import gzip
import hashlib
import sys
import zipfile
from pathlib import Path

import yaml

from lmtools.base.atomic import atomic_path
from lmtools.base.computing import USUAL
from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines, sha256
from lmtools.base.grammar import parse_pairs
from lmtools.base.seal import SEAL, add_yaml_seal
from lmtools.base.specs import GROUP, NAME, WEIGHTS, LMSpec
from lmtools.ngram.directory import BINARY, COMPRESSED
from lmtools.score.ppl import perplexity

VERSION = "1.0.0"
CONFIG, CARD = "config.yaml", "README.md"
FILES = (CONFIG, BINARY, WEIGHTS, "metrics.jsonl")  # of a model, beside subword
METADATA = """\
Metadata-Version: 2.1
Name: {package}
Version: {version}
Summary: Language models for lmtools
Requires-Python: >=3.10
Description-Content-Type: text/markdown

{card}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: pack_models.py
Root-Is-Purelib: true
Tag: py3-none-any
"""
CARD_TEXT = """\
{about}
No code comes with the models.

| name | kind | parameters or n-grams | MB | perplexity a word | SHA-256 of the weights |
|---|---|---:|---:|---:|---|
{models}

Perplexity is that of {valid:,} sentences that no model has read. A pseudo-perplexity compares with
none of another kind.

| text | bytes | SHA-256 |
|---|---:|---|
{texts}
"""


def main(out: str, about: str, valid: str, *inputs: str) -> None:
    """Pack, and say how large the wheel is."""
    models = [x for x in inputs if "=" in x]
    lms = parse_pairs(models, "NAME=DIR", "NAME=DIR", "write for instance en-books-4gram=exp/lm/x")
    for name in lms:
        if not NAME.fullmatch(name):
            raise UserError(f"{name}: no name of a model; write letters, digits, dashes")
    title, *_ = (said := [line for _, line in read_lines(about)])
    package = title.removeprefix("# ")
    if not NAME.fullmatch(package):
        raise UserError(f"{about}:1: no title; write # and the name of the package")
    sentences = [line for _, line in read_lines(valid) if line.strip()]
    card = CARD_TEXT.format(
        about="\n".join(said),
        models="\n".join(describe_model(name, Path(lm), sentences) for name, lm in lms.items()),
        valid=len(sentences),
        texts="\n".join(describe_text(Path(x)) for x in inputs if "=" not in x),
    )
    Path(out).mkdir(parents=True, exist_ok=True)
    Path(out, CARD).write_text(card, encoding="utf-8")
    wheel = write_wheel(Path(out), package, lms, card)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


def write_wheel(out: Path, package: str, lms: dict[str, str], card: str) -> Path:
    """Write the wheel: a zip file of the models, what describes them, and the digest of each file.
    It takes no build tool, so that it is made wherever lmtools runs.
    """
    module = package.replace("-", "_")
    folders = {name: name.replace("-", "_").replace(".", "_") for name in lms}
    points = "".join(f"{name} = {module}.{folders[name]}\n" for name in lms)
    info = f"{module}-{VERSION}.dist-info"
    files = {f"{module}/__init__.py": b'"""Language models; no code."""\n'}
    for name, lm in lms.items():
        packed = pack_model(Path(lm)).items()
        files |= {f"{module}/{folders[name]}/{path}": content for path, content in packed}
    metadata = METADATA.format(package=package, version=VERSION, card=card)
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/entry_points.txt"] = f"[{GROUP}]\n{points}".encode()
    rows = [f"{path},sha256={hash_record(files[path])},{len(files[path])}" for path in files]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    wheel = out / f"{module}-{VERSION}-py3-none-any.whl"
    with atomic_path(wheel) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)  # with a fixed date: equal models make equal wheels
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def hash_record(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes as a wheel's RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def pack_model(lm: Path) -> dict[str, bytes]:
    """Return the files that load a model, by their path in it. An ARPA file is compressed."""
    if not (lm / CONFIG).is_file():
        raise UserError(f"{lm}: no language model; give what lmtools train or ngram wrote")
    found = [*(lm / "subword").iterdir(), *(lm / name for name in FILES)]
    files = {str(path.relative_to(lm)): path.read_bytes() for path in found if path.is_file()}
    if not files.keys() & {BINARY, WEIGHTS}:
        config = load_yaml(lm / CONFIG)
        files[COMPRESSED] = gzip.compress((lm / config["file"]).read_bytes(), mtime=0)
        digest = hashlib.sha256(files[COMPRESSED]).hexdigest()
        config = config | {"file": COMPRESSED, "sha256": digest}
        text = yaml.safe_dump({key: config[key] for key in config if key != SEAL}, sort_keys=False)
        files[CONFIG] = add_yaml_seal(text).encode()
    return files


def describe_model(name: str, lm: Path, sentences: list[str]) -> str:
    """Return the row of the card."""
    files = pack_model(lm)
    config = yaml.safe_load(files[CONFIG])
    weights = files[config.get("file", WEIGHTS)]
    kind = config["facts"].get("family", f"{config.get('order')}-gram")
    figures = perplexity(sentences, LMSpec(str(lm)), USUAL)
    values = (
        name, kind, f"{config['facts']['parameters']:,}", f"{len(weights) / 1e6:.1f}",
        f"{figures['word_ppl']:.1f}{' (pseudo)' * figures['kind'].startswith('pseudo')}",
        f"`{hashlib.sha256(weights).hexdigest()}`",
    )  # fmt: skip
    return f"| {' | '.join(values)} |"


def describe_text(path: Path) -> str:
    """Return the row of a file of text."""
    return f"| {path.name} | {path.stat().st_size:,} | `{sha256(path)}` |"


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
