"""Artifacts of an experiment as they lie in its directory; a damaged one, or one of another shape,
is a UserError that names it, before anything is drawn.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, defstruct

from lmtools.base import seal
from lmtools.base.atomic import ASIDE
from lmtools.base.config import load_yaml
from lmtools.base.doors import hook
from lmtools.base.files import read_lines
from lmtools.base.grammar import Amount, Finite, Positive, Whole, fit
from lmtools.base.seal import check_seal, parse_json
from lmtools.formats import kaldi_text, scores
from lmtools.rescoring.features import UNCHECKED
from lmtools.rescoring.weights import Weights
from lmtools.text.corpus import Header, read_header

NUMBER, AMOUNT, POSITIVE, WHOLE, TEXT, PLAIN = Finite, Amount, Positive, Whole, str, str | Finite
ANY = "*"  # in a mapping of ANY to a shape: each key

# A shape is a type, a mapping of names to shapes (`name?` may be absent or null), [shape] of each
# entry of a list, (shape,) of one that is not empty, or (shape, shape ...) of one of that length.
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
GRID_SHAPE = {"own?": [TEXT]}
LATTICE_SHAPE = {
    **dict.fromkeys(("lattices", "arcs", "rescored_arcs", "speech", "seconds"), AMOUNT),
    "approximation?": {ANY: NUMBER},
    "signatures?": {ANY: {ANY: TEXT}},
}
SCORED_SHAPE = {
    **dict.fromkeys(("substitutions?", "deletions?", "insertions?", "length?"), WHOLE),
    "metric": TEXT,
    "signature": TEXT,
    "score?": NUMBER,
    "interval?": (NUMBER, NUMBER),
    "by label?": [{"name": TEXT, "score?": NUMBER}],
}
METRICS_SHAPE = {
    "step": WHOLE,
    **dict.fromkeys(("tokens?", "seconds?", "epoch?"), AMOUNT),
    **dict.fromkeys(("train_loss?", "valid_loss?", "lr?"), NUMBER),
}
STAGE_SHAPE = {
    "stage?": WHOLE,
    **dict.fromkeys(("title?", "command?", "started?", "finished?"), TEXT),
    "seconds?": AMOUNT,
    "options?": {"corpus?": TEXT, "pair?": TEXT},
}
CURVE = {"points": ((NUMBER, NUMBER),), "flat": (NUMBER, NUMBER), "chosen": NUMBER, "part?": NUMBER}
SEARCH_SHAPE = {"seed?": PLAIN, "form?": TEXT, "lambda?": NUMBER, "curves?": {ANY: CURVE}}
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


def read_by_set(kind: str, shape: Mapping, home: Path) -> dict[tuple[str, str], Mapping]:
    """Read the JSON objects of that shape in KIND/NAME/SET.json by (name, set)."""
    paths = sorted(home.glob(f"{kind}/*/*.json"))
    return {(path.parent.name, path.stem): read_json(path, shape) for path in paths}


def read_json(path: Path, shape: Mapping) -> dict:
    """Read the JSON object in `path`; UserError if it is none or has another shape."""
    return fitting(seal.read_json(path), shape, path)


def read_grids(home: Path) -> set[str]:
    """Read the names of the language models that were trained for a comparison in grids/*.yaml."""
    trees = (
        fitting(load_yaml(path), GRID_SHAPE, path, "let the recipe write it again")
        for path in sorted(home.glob("grids/*.yaml"))
    )
    return {name for tree in trees for name in tree.get("own") or ()}


def read_models(home: Path) -> dict[str, str]:
    """Read the model hash of each language model's scores, several joined by `/`; of a model with
    normalised scores, only these.
    """
    hashes: dict[str, dict[str, bool]] = {}
    for path in sorted(home.glob("score/*/*.scores*")):
        signature = scores.header(path, next(read_lines(path), (1, ""))[1])
        model = str(signature.get("model", "unknown"))
        normalised = signature.get("normalise", "full") == "full"
        hashes.setdefault(path.parent.name, {})[model] = normalised
    whole = {value for kinds in hashes.values() for value, full in kinds.items() if full}
    return {
        name: "/".join(kinds)
        for name, kinds in hashes.items()
        if any(full or value not in whole for value, full in kinds.items())
    }


def list_unchecked(home: Path) -> list[str]:
    """Return a warning on each file of scores that does not say of which lists it is."""
    return [
        UNCHECKED.format(path)
        for path in sorted(home.glob("score/*/*.scores*"))
        if scores.read(path).lists is None
    ]


def read_configs(home: Path) -> dict[str, dict]:
    remedy = "copy the directory again, or train again"
    trees = {
        path: check_seal(load_yaml(path), path, remedy, warn=False)
        for path in list_of_models(home, "config.yaml")
    }
    return {
        path.parent.name: fitting(tree, CONFIG_SHAPE, path, remedy) for path, tree in trees.items()
    }


def read_learning(home: Path) -> dict[str, list[dict]]:
    """Read the lines of metrics.jsonl of each language model, but a last one that is cut short."""
    remedy, learning = "take the line out", {}
    for path in list_of_models(home, "metrics.jsonl"):
        lines = [(number, line) for number, line in read_lines(path) if line.strip()]
        if lines and not lines[-1][1].endswith("}"):
            lines.pop()
        trees = {f"{path}:{n}": parse_json(line, f"{path}:{n}", remedy) for n, line in lines}
        learning[path.parent.name] = [
            drop_nulls(fitting(tree, METRICS_SHAPE, at, remedy)) for at, tree in trees.items()
        ]
    return learning


def list_of_models(home: Path, file: str) -> list[Path]:
    """Return that file of each language model, without those that `lmtools train` set aside."""
    paths = sorted(home.glob(f"lm/*/{file}"))
    return [path for path in paths if not (path.parent / ASIDE).exists()]


def drop_nulls(tree: Mapping) -> dict:
    return {name: value for name, value in tree.items() if value is not None}


def read_training(home: Path) -> Header | None:
    """Read the header of the training corpus, of several that of words; None without one."""
    paths = sorted(
        [*home.glob("train.bin"), *home.glob("corpus/*/train.bin")],
        key=lambda path: (path.parent.name != "words", path.parent.name),
    )
    return read_header(paths[0])[0] if paths else None


def read_stages(home: Path) -> list[dict]:
    """Return the manifests of the recipe's stages in the order in which they were started: N.json
    of run.sh's, and NAME-N.json of those of run_NAME.sh, which have NAME-N as their stage.
    """
    named = ((re.fullmatch(r"(?:(.+)-)?(\d+)", p.stem), p) for p in home.glob("stages/*.json"))
    numbered = sorted((match[1] or "", int(match[2]), path) for match, path in named if match)
    remedy, stages = "run the stage again", []
    for script, _, path in numbered:
        stage = drop_nulls(fitting(seal.read_json(path, remedy), STAGE_SHAPE, path, remedy))
        stages.append({**stage, **({"stage": path.stem} if script else {})})
    return sorted(stages, key=lambda manifest: manifest.get("started", ""))


def read_systems(home: Path) -> dict[str, tuple[Weights | None, dict[str, dict[str, str]]]]:
    """Read each system with rescored texts: its weights if they are there, and texts by set."""
    systems = {}
    for name in sorted({path.parent.name for path in home.glob("rescore/*/*.txt")}):
        path = home / "tune" / name / "weights.json"
        texts = sorted((home / "rescore" / name).glob("*.txt"))
        texts = {text.stem: kaldi_text.read(text) for text in texts}
        weights = Weights.load(path) if path.exists() else None
        if weights:
            fitting(
                weights.search, SEARCH_SHAPE, f"{path}: search", "write it again with lmtools tune"
            )
        systems[name] = weights, texts
    return systems


def read_networks(home: Path) -> Mapping:
    """Read the networks of words by (system, set), as a door does."""
    read = hook("read_networks")
    return read(home) if read else {}


# by name: the reader, which takes the directory, and what is said where it finds none
ARTIFACTS = {
    "judged": (
        partial(read_by_set, "sts", {}),
        "sts/SYSTEM/SET.json: absent, so there is nothing to say of similarity (`lmtools sts --out`"
        " writes them)",
    ),
    "systems": (
        read_systems,
        "rescore/SYSTEM/SET.txt: absent, so there are no rescored systems (`lmtools rescore` writes"
        " them)",
    ),
    "configs": (
        read_configs,
        "lm/LM/config.yaml: absent, so there is nothing to say of models (`lmtools train` and"
        " `lmtools ngram` write them)",
    ),
    "ppl": (
        partial(read_by_set, "ppl", PPL_SHAPE),
        "ppl/LM/SET.json: absent, so there is no table of perplexities (`lmtools ppl --out` writes"
        " them)",
    ),
    "learning": (
        read_learning,
        "lm/LM/metrics.jsonl: absent, so there is nothing to say of trainings (`lmtools train`"
        " writes them)",
    ),
    "grids": (read_grids, ""),
    "networks": (read_networks, ""),
    "scored": (partial(read_by_set, "scored", SCORED_SHAPE), ""),
    "lattices": (partial(read_by_set, "lattice", LATTICE_SHAPE), ""),
    "stages": (
        read_stages,
        "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes"
        " them)",
    ),
    "hashes": (
        read_models,
        "score/LM/SET.scores: absent, so no model hashes are given (`lmtools score` writes them)",
    ),
    "training": (read_training, ""),
}


def fitting(tree: Mapping, shape: Mapping, where, remedy: str = "write it again") -> Mapping:
    """Return `tree`, if it has that shape; UserError about `where` otherwise."""
    fit(tree, as_type(shape), where, remedy=remedy)
    return tree


def as_type(shape):
    if isinstance(shape, list):
        return list[as_type(shape[0])]
    if isinstance(shape, tuple) and len(shape) == 1:
        return Annotated[list[as_type(shape[0])], Meta(min_length=1)]
    if isinstance(shape, tuple):
        return tuple[tuple(map(as_type, shape))]
    if not isinstance(shape, dict):
        return shape
    if not shape:
        return dict
    if ANY in shape:
        return dict[Any, as_type(shape[ANY])]
    keys = {f"f{place}": key.removesuffix("?") for place, key in enumerate(shape)}
    types = [(key, as_type(inner)) for key, inner in shape.items()]
    fields = [
        (name, kind | None, None) if key.endswith("?") else (name, kind)
        for name, (key, kind) in zip(keys, types, strict=True)
    ]
    return defstruct("Shape", fields, rename=keys, kw_only=True)
