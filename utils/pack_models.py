#!/usr/bin/env python3
"""pack_models.py OUT VALID TEXT_DIR NAME=DIR...: the wheel lmtools-models-en, in directory OUT, of
trained English language models, by the names that `--lm NAME` and `lmtools.load(NAME)` find.

Of a model what loads it is packed: settings, weights, subword model with its normaliser. The model
card, README.md beside the wheel and in it, says what the models are, their perplexity on the text
VALID, which they have not read, and the digests of TEXT_DIR/*.txt*.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.computing import USUAL
from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines, sha256
from lmtools.base.grammar import parse_pairs
from lmtools.base.specs import GROUP, NAME, PACKAGE, LMSpec
from lmtools.score.ppl import perplexity

VERSION = "1.0.0"
CONFIG, CARD = "config.yaml", "README.md"
FILES = (CONFIG, "lm.bin", "model.safetensors", "metrics.jsonl")  # of a model, beside subword
PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "{version}"
description = "English language models of books in the public domain, for lmtools"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.10"

[project.entry-points."{group}"]
{points}

[tool.setuptools]
packages = ["{module}"]
package-data = {{ "*" = ["**/*"] }}
"""
CARD_TEXT = """\
# {package} {version}

English language models of books in the public domain, for lmtools: `--lm {name}`, or
`lmtools.load("{name}")`. No code comes with them.

| name | kind | parameters or n-grams | MB | perplexity a word | SHA-256 of the weights |
|---|---|---:|---:|---:|---|
{models}

Perplexity is that of {valid:,} sentences of the same books that no model has read. A
pseudo-perplexity compares with none of another kind.

The text is in the public domain, the weights are under Apache-2.0. The models give probabilities of
lower-case English, and each carries the normaliser that makes text so. They know the language of
books, and little of the names, numbers and speech of today. Nobody has read the text for what is
false or hurtful in it.

| text | bytes | SHA-256 |
|---|---:|---|
{texts}
"""


def main(out: str, valid: str, text_dir: str, *models: str) -> None:
    """Pack, and say how large the wheel is."""
    lms = parse_pairs(models, "NAME=DIR", "NAME=DIR", "write for instance en-books-4gram=exp/lm/x")
    for name in lms:
        if not NAME.fullmatch(name):
            raise UserError(f"{name}: no name of a model; write letters, digits, dashes")
    Path(out).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        write_project(Path(work), valid, text_dir, lms)
        shutil.copy(Path(work, CARD), out)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*build, "--no-deps", "--no-build-isolation", "-w", out, work], check=True)
    wheel = next(Path(out).glob(f"{PACKAGE.replace('-', '_')}-{VERSION}-*.whl"))
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


def write_project(work: Path, valid: str, text_dir: str, lms: dict[str, str]) -> None:
    """Write what setuptools makes a wheel of."""
    module = PACKAGE.replace("-", "_")
    folders = {name: name.replace("-", "_").replace(".", "_") for name in lms}
    for name, lm in lms.items():
        copy_model(Path(lm), work / module / folders[name])
    (work / module / "__init__.py").write_text('"""Language models; no code."""\n')
    names = {"package": PACKAGE, "version": VERSION, "name": next(iter(lms))}
    points = "\n".join(f'"{name}" = "{module}.{folders[name]}"' for name in lms)
    project = PROJECT.format(**names, group=GROUP, points=points, module=module)
    (work / "pyproject.toml").write_text(project)
    sentences = [line for _, line in read_lines(valid) if line.strip()]
    rows = [describe_model(name, Path(lm), sentences) for name, lm in lms.items()]
    card = CARD_TEXT.format(
        **names, models="\n".join(rows), valid=len(sentences), texts="\n".join(digest(text_dir))
    )
    (work / CARD).write_text(card, encoding="utf-8")


def copy_model(lm: Path, out: Path) -> None:
    """Copy what loads a model."""
    if not (lm / CONFIG).is_file():
        raise UserError(f"{lm}: no language model; give what lmtools train or ngram wrote")
    shutil.copytree(lm / "subword", out / "subword")
    for name in FILES:
        if (lm / name).is_file():
            shutil.copyfile(lm / name, out / name)


def describe_model(name: str, lm: Path, sentences: list[str]) -> str:
    """Return the row of the card."""
    config = load_yaml(lm / CONFIG)
    weights = lm / config.get("file", "model.safetensors")
    kind = config["facts"].get("family", f"{config.get('order')}-gram")
    figures = perplexity(sentences, LMSpec(str(lm)), USUAL)
    values = (
        name, kind, f"{config['facts']['parameters']:,}", f"{weights.stat().st_size / 1e6:.1f}",
        f"{figures['word_ppl']:.1f}{' (pseudo)' * figures['kind'].startswith('pseudo')}",
        f"`{sha256(weights)}`",
    )  # fmt: skip
    return f"| {' | '.join(values)} |"


def digest(text_dir: str) -> Iterator[str]:
    """Yield the rows of the text's files."""
    for path in sorted(Path(text_dir).glob("*.txt*")):
        yield f"| {path.name} | {path.stat().st_size:,} | `{sha256(path)}` |"


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
