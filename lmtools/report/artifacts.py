"""Single artifacts of an experiment as they lie in its directory; a damaged one is a UserError that names it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmtools.config import load_yaml
from lmtools.errors import UserError
from lmtools.files import read_bytes, read_lines
from lmtools.formats import scores
from lmtools.report.names import UNNORMALISED, ordered


def read_ppl(home: Path) -> dict[tuple[str, str], Mapping]:
    """What `lmtools ppl` wrote, by (language model, set)."""
    paths = {(path.parent.name, path.stem): path for path in sorted(home.glob("ppl/*/*.json"))}
    names = ordered({name for name, _ in paths})
    return {key: read_json(paths[key], "word_ppl") for key in sorted(paths, key=lambda key: (names.index(key[0]), key[1]))}


def read_lattices(home: Path) -> dict[tuple[str, str], Mapping]:
    """What `lmtools lattice rescore --report` wrote, by (system, set)."""
    paths = {(path.parent.name, path.stem): path for path in sorted(home.glob("lattice/*/*.json"))}
    names = ordered({name for name, _ in paths})
    return {key: read_json(paths[key], "lattices") for key in sorted(paths, key=lambda key: (names.index(key[0]), key[1]))}


def read_models(home: Path) -> dict[str, str]:
    """The model hash of each language model's scores, several joined by `/`; scores without normalisation are the same model's."""
    hashes: dict[str, list[str]] = {}
    for path in by_name(home.glob("score/*/*.scores*")):
        signature = scores.header(path, next(read_lines(path), (1, ""))[1])
        value = str(signature.get("model", "unknown"))
        name = path.parent.name.removesuffix(UNNORMALISED)
        if value not in hashes.setdefault(name, []):
            hashes[name].append(value)
    return {name: "/".join(values) for name, values in hashes.items()}


def read_configs(home: Path) -> dict[str, dict]:
    """The config.yaml of each language model."""
    return {path.parent.name: load_yaml(path) for path in by_name(home.glob("lm/*/config.yaml"))}


def trained_on(configs: Iterable[Mapping]) -> str:
    """On what processors, by how many threads, the models were trained, as their config.yaml say; nothing where none does."""
    facts = [config["machine"] for config in configs if isinstance(config.get("machine"), Mapping)]
    said = dict.fromkeys("{processor} ({capability}), threads {threads}, torch {torch}, {device}".format_map(Known(fact)) for fact in facts)
    return f"trained on {' and '.join(said)}" if said else ""


class Known(dict):
    """A mapping in which what is missing is unknown."""

    def __missing__(self, key) -> str:
        return "unknown"


def read_metrics(path: Path) -> list[dict]:
    """The lines of a training's metrics.jsonl; a last line that a crash cut short is dropped."""
    lines = [(number, line) for number, line in read_lines(path) if line.strip()]
    if lines and not lines[-1][1].endswith("}"):
        lines.pop()
    return [parse(line, f"{path}:{number}", "train the model again") for number, line in lines]


def read_json(path: Path, key: str | None = None) -> dict:
    """The JSON object in `path`; UserError if it is none or lacks `key`."""
    tree = parse(read_bytes(path), path, "write it again")
    if key and key not in tree:
        raise UserError(f"{path}: has no {key!r}; write it again")
    return tree


def parse(content, where, remedy: str) -> dict:
    """The JSON object that `content` spells; UserError otherwise."""
    try:
        tree = json.loads(content)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}); {remedy}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{where}: expected a JSON object; {remedy}")
    return tree


def numbered(folder: Path) -> list[Path]:
    """The files N.json of `folder`, by number."""
    return sorted((path for path in folder.glob("*.json") if path.stem.isdecimal()), key=lambda path: int(path.stem))


def by_name(paths: Iterable[Path]) -> list[Path]:
    """Paths like lm/NAME/file in the printing order of NAME."""
    paths = sorted(paths)
    names = ordered({path.parent.name for path in paths})
    return sorted(paths, key=lambda path: names.index(path.parent.name))
