"""Single artifacts of an experiment as they lie in its directory; a damaged one is a UserError that
names it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lmtools import seal
from lmtools.config import load_yaml
from lmtools.files import read_bytes, read_lines
from lmtools.formats import scores
from lmtools.report.names import UNNORMALISED, ordered
from lmtools.report.shapes import fitting
from lmtools.rescore.features import UNCHECKED
from lmtools.seal import check_seal, parse_json


def read_ppl(home: Path) -> dict[tuple[str, str], Mapping]:
    """What `lmtools ppl` wrote, by (language model, set)."""
    paths = {(path.parent.name, path.stem): path for path in sorted(home.glob("ppl/*/*.json"))}
    names = ordered({name for name, _ in paths})
    return {
        key: read_json(paths[key], "ppl")
        for key in sorted(paths, key=lambda key: (names.index(key[0]), key[1]))
    }


def read_lattices(home: Path) -> dict[tuple[str, str], Mapping]:
    """What `lmtools lattice rescore --report` wrote, by (system, set)."""
    paths = {(path.parent.name, path.stem): path for path in sorted(home.glob("lattice/*/*.json"))}
    names = ordered({name for name, _ in paths})
    return {
        key: read_json(paths[key], "lattice")
        for key in sorted(paths, key=lambda key: (names.index(key[0]), key[1]))
    }


def read_models(home: Path) -> dict[str, str]:
    """The model hash of each language model's scores, several joined by `/`; scores without
    normalisation are the same model's.
    """
    hashes: dict[str, list[str]] = {}
    for path in by_name(home.glob("score/*/*.scores*")):
        signature = scores.header(path, next(read_lines(path), (1, ""))[1])
        value = str(signature.get("model", "unknown"))
        name = path.parent.name.removesuffix(UNNORMALISED)
        if value not in hashes.setdefault(name, []):
            hashes[name].append(value)
    return {name: "/".join(values) for name, values in hashes.items()}


def unchecked(home: Path) -> list[str]:
    """A warning on each file of scores whose rows do not vouch for their texts."""
    return [
        UNCHECKED.format(path)
        for path in by_name(home.glob("score/*/*.scores*"))
        if not scores.has_check(next(read_lines(path))[1])
    ]


def read_configs(home: Path) -> dict[str, dict]:
    """The config.yaml of each language model."""
    paths = by_name(home.glob("lm/*/config.yaml"))
    return {path.parent.name: read_yaml(path, "config") for path in paths}


def read_yaml(path: Path, shape: str) -> dict:
    """The description in a model's directory; UserError where it was damaged or has not the shape
    of that name.
    """
    remedy = "copy the directory again, or train again"
    return fitting(check_seal(load_yaml(path), path, remedy, warn=False), shape, path, remedy)


def trained_on(configs: Iterable[Mapping]) -> str:
    """On what processors, by how many threads, the models were trained, as their config.yaml say;
    nothing where none does.
    """
    facts = [config["machine"] for config in configs if isinstance(config.get("machine"), Mapping)]
    said = dict.fromkeys(
        "{processor} ({capability}), threads {threads}, torch {torch}, {device}".format_map(
            Known(fact)
        )
        for fact in facts
    )
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
    remedy = "take the line out"
    return [
        known(
            fitting(
                parse_json(line, f"{path}:{number}", remedy), "metrics", f"{path}:{number}", remedy
            )
        )
        for number, line in lines
    ]


def read_manifest(path: Path) -> dict:
    """The JSON object in the manifest of a stage, which has no seal: a recipe hashes what its
    stages write.
    """
    remedy = "run the stage again"
    return known(fitting(parse_json(read_bytes(path), path, remedy), "stage", path, remedy))


def known(tree: Mapping) -> dict:
    """What a mapping says that is not null."""
    return {name: value for name, value in tree.items() if value is not None}


def read_json(path: Path, shape: str | None = None) -> dict:
    """The JSON object in `path`; UserError if it is none, was damaged or has not the shape of that
    name.
    """
    return seal.read_json(path, check=lambda tree: fitting(tree, shape, path) if shape else tree)


def numbered(folder: Path) -> list[Path]:
    """The files N.json of `folder`, by number."""
    return sorted(
        (path for path in folder.glob("*.json") if path.stem.isdecimal()),
        key=lambda path: int(path.stem),
    )


def by_name(paths: Iterable[Path]) -> list[Path]:
    """Paths like lm/NAME/file in the printing order of NAME."""
    paths = sorted(paths)
    names = ordered({path.parent.name for path in paths})
    return sorted(paths, key=lambda path: names.index(path.parent.name))
