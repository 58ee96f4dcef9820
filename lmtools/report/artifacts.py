"""Single artifacts of an experiment as they lie in its directory; a damaged one is a UserError that
names it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmtools import seal
from lmtools.config import load_yaml
from lmtools.corpus import Header, read_header
from lmtools.files import read_bytes, read_lines
from lmtools.formats import scores
from lmtools.lock import ASIDE
from lmtools.report.shapes import AMOUNT, ANY, NUMBER, PLAIN, POSITIVE, TEXT, WHOLE, fitting
from lmtools.rescoring.features import UNCHECKED
from lmtools.seal import check_seal, parse_json

# what is expected of each artifact that several kinds of report read
PPL_SHAPE = {
    "word_ppl": POSITIVE,
    "kind?": TEXT,
    "rules?": TEXT,
    "signature?": {},
    **dict.fromkeys(("oov?", "sentences?", "words?"), WHOLE),
    **dict.fromkeys(("subword_ppl?", "bits_per_char?", "tokens?", "log_prob?"), NUMBER),
    **dict.fromkeys(("sentence_ppl_mean?", "sentence_ppl_median?"), NUMBER),
    "log_normaliser?": dict.fromkeys(("mean", "sd", "min", "max"), NUMBER),
    "mixture?": ({"lm": TEXT, "weight": AMOUNT},),
}
TIMES = {"words": WHOLE, "seconds_median": POSITIVE, "seconds?": [POSITIVE]}
SPEED_SHAPE = {
    "rows": ({"lm": TEXT, "task": TEXT, **TIMES},),
    "machine?": TEXT,
    "threads?": PLAIN,
    "batched?": {ANY: {"share": NUMBER, ANY: PLAIN}},
}
METRICS_SHAPE = {
    "step": WHOLE,
    **dict.fromkeys(("tokens?", "seconds?", "epoch?"), AMOUNT),
    **dict.fromkeys(("train_loss?", "valid_loss?", "lr?"), NUMBER),
}
STAGE_SHAPE = {
    "stage?": WHOLE,
    "title?": TEXT,
    "command?": TEXT,
    "seconds?": AMOUNT,
    "started?": TEXT,
    "finished?": TEXT,
    "options?": {"corpus?": TEXT, "pair?": TEXT},
}
OPTIM = {"name?": TEXT, "lr?": NUMBER, "clip?": NUMBER, "momentum?": NUMBER, "decay?": TEXT}
CONFIG_SHAPE = {
    **dict.fromkeys(("model?", "kind?", "objective?", "criterion?"), TEXT),
    **dict.fromkeys(("seed?", "tokens?"), WHOLE),
    "counts?": [WHOLE],
    "arch?": {},
    "optim?": OPTIM,
    "vocabulary?": {"size?": WHOLE},
    "output?": {"noise?": TEXT, "samples?": WHOLE},
    "facts?": {
        "family?": TEXT,
        "parameters?": WHOLE,
        "vocabulary?": {"scheme?": TEXT, "size?": WHOLE, "words?": WHOLE},
        "criterion?": {"name?": TEXT, "noise?": TEXT, "samples?": WHOLE},
    },
}


def read_ppl(home: Path) -> dict[tuple[str, str], Mapping]:
    """Read the results of `lmtools ppl`, by (language model, set)."""
    return read_by_set(home, "ppl", PPL_SHAPE)


def read_by_set(home: Path, kind: str, shape: Mapping) -> dict[tuple[str, str], Mapping]:
    """Read the JSON objects of that shape in KIND/NAME/SET.json by (name, set)."""
    paths = sorted(home.glob(f"{kind}/*/*.json"))
    return {(path.parent.name, path.stem): read_json(path, shape) for path in paths}


def read_models(home: Path) -> dict[str, str]:
    """Read the model hash of each language model's scores, several joined by `/`.

    Scores without normalisation are not told apart where the same model has scores with it.
    """
    hashes: dict[str, dict[str, bool]] = {}
    for path in sorted(home.glob("score/*/*.scores*")):
        signature = scores.header(path, next(read_lines(path), (1, ""))[1])
        found = hashes.setdefault(path.parent.name, {})
        found[str(signature.get("model", "unknown"))] = signature.get("normalise", "full") == "full"
    whole = {
        value for found in hashes.values() for value, normalised in found.items() if normalised
    }
    return {
        name: "/".join(found)
        for name, found in hashes.items()
        if any(normalised or value not in whole for value, normalised in found.items())
    }


def unchecked(home: Path) -> list[str]:
    """Return a warning on each file of scores whose rows do not match their texts."""
    return [
        UNCHECKED.format(path)
        for path in sorted(home.glob("score/*/*.scores*"))
        if not scores.has_check(next(read_lines(path))[1])
    ]


def read_configs(home: Path) -> dict[str, dict]:
    """Read the config.yaml of each language model."""
    return {
        path.parent.name: read_yaml(path, CONFIG_SHAPE) for path in of_models(home, "config.yaml")
    }


def read_learning(home: Path) -> dict[str, list[dict]]:
    """Read the lines of metrics.jsonl of each language model."""
    return {path.parent.name: read_metrics(path) for path in of_models(home, "metrics.jsonl")}


def of_models(home: Path, file: str) -> list[Path]:
    """Return that file of each language model, by name, without those that `lmtools train` set
    aside.
    """
    paths = sorted(home.glob(f"lm/*/{file}"))
    return [path for path in paths if not (path.parent / ASIDE).exists()]


def read_training(home: Path) -> Header | None:
    """Read the header of the training corpus, of several that of words; None without one."""
    paths = sorted(
        [*home.glob("train.bin"), *home.glob("corpus/*/train.bin")],
        key=lambda path: (path.parent.name != "words", path.parent.name),
    )
    return read_header(paths[0])[0] if paths else None


def read_speed(home: Path) -> dict | None:
    """Read the results of `lmtools bench score`; None without them."""
    path = home / "bench/speed.json"
    return read_json(path, SPEED_SHAPE) if path.exists() else None


def read_stages(home: Path) -> list[dict]:
    """Return the manifests of the recipe's stages in the order in which they were started; those
    of run_NAME.sh have NAME-N as their stage.
    """
    found = [
        {**read_manifest(path), **({"stage": path.stem} if "-" in path.stem else {})}
        for path in list_manifests(home / "stages")
    ]
    return sorted(found, key=lambda manifest: manifest.get("started", ""))


def read_yaml(path: Path, shape: Mapping) -> dict:
    """Read the description in a model's directory; UserError where it was damaged or has not that
    shape.
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
    """Read the lines of a training's metrics.jsonl, without a last one that a crash cut short."""
    lines = [(number, line) for number, line in read_lines(path) if line.strip()]
    if lines and not lines[-1][1].endswith("}"):
        lines.pop()
    remedy = "take the line out"
    return [
        known(
            fitting(
                parse_json(line, f"{path}:{number}", remedy),
                METRICS_SHAPE,
                f"{path}:{number}",
                remedy,
            )
        )
        for number, line in lines
    ]


def read_manifest(path: Path) -> dict:
    """Return the JSON object in the manifest of a stage; UserError where it was damaged."""
    remedy = "run the stage again"
    tree = check_seal(parse_json(read_bytes(path), path, remedy), path, remedy, warn=False)
    return known(fitting(tree, STAGE_SHAPE, path, remedy))


def known(tree: Mapping) -> dict:
    """Return the entries of a mapping that are not null."""
    return {name: value for name, value in tree.items() if value is not None}


def read_json(path: Path, shape: Mapping | None = None) -> dict:
    """Read the JSON object in `path`; UserError if it is none, was damaged or has not the shape of
    that name.
    """
    return seal.read_json(path, check=lambda tree: fitting(tree, shape, path) if shape else tree)


def list_manifests(folder: Path) -> list[Path]:
    """Return the files N.json of run.sh's stages in `folder`, by number, then those of the scripts
    beside it, NAME-N.json.
    """
    named = ((re.fullmatch(r"(?:(.+)-)?(\d+)", path.stem), path) for path in folder.glob("*.json"))
    found = [(match[1] or "", int(match[2]), path) for match, path in named if match]
    return [path for *_, path in sorted(found)]
