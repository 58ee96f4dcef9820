#!/usr/bin/env python3
"""pack_models.py OUT ABOUT VALID TEXT... NAME=DIR...: a wheel, in directory OUT, of trained
language models, by the names that `--lm NAME` and `lmtools.load(NAME)` find.

Of a model what loads it is packed: settings, weights, subword model with its normaliser. The model
card, README.md beside the wheel and in it, begins with the Markdown file ABOUT, whose title is the
package's name, and has the models' perplexity on the text VALID, which they have not read, and the
digests of the files TEXT.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lmtools.base.computing import USUAL
from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines, sha256
from lmtools.base.grammar import parse_pairs
from lmtools.base.specs import GROUP, NAME, LMSpec
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
description = "Language models for lmtools"
readme = "README.md"
requires-python = ">=3.10"

[project.entry-points."{group}"]
{points}

[tool.setuptools]
packages = ["{module}"]
package-data = {{ "*" = ["**/*"] }}
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
    with tempfile.TemporaryDirectory() as work:
        write_project(Path(work), package, lms)
        Path(work, CARD).write_text(card, encoding="utf-8")
        shutil.copy(Path(work, CARD), out)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*build, "--no-deps", "--no-build-isolation", "-w", out, work], check=True)
    wheel = next(Path(out).glob(f"{package.replace('-', '_')}-{VERSION}-*.whl"))
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


def write_project(work: Path, package: str, lms: dict[str, str]) -> None:
    """Write what setuptools makes a wheel of."""
    module = package.replace("-", "_")
    folders = {name: name.replace("-", "_").replace(".", "_") for name in lms}
    for name, lm in lms.items():
        copy_model(Path(lm), work / module / folders[name])
    (work / module / "__init__.py").write_text('"""Language models; no code."""\n')
    points = "\n".join(f'"{name}" = "{module}.{folders[name]}"' for name in lms)
    project = PROJECT.format(
        package=package, version=VERSION, group=GROUP, points=points, module=module
    )
    (work / "pyproject.toml").write_text(project)


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


def describe_text(path: Path) -> str:
    """Return the row of a file of text."""
    return f"| {path.name} | {path.stat().st_size:,} | `{sha256(path)}` |"


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
