"""The one place where a language model of any kind is loaded."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from lmtools.base.computing import USUAL, Computing
from lmtools.base.doors import lacks
from lmtools.base.doors import load as load_place
from lmtools.base.errors import UserError, explain_missing
from lmtools.base.specs import (
    HF,
    LLMS,
    MIX,
    WEIGHTS,
    LMSpec,
    find_model,
    find_place,
    list_models,
    parse_mixture,
)
from lmtools.ngram.model import CONFIG, NgramModel
from lmtools.score.base import Scorer
from lmtools.score.ngram import NgramScorer

PARTS = (".yaml", ".json", ".jsonl", ".safetensors", ".pt")  # files of a model directory


def load(spec: LMSpec | str, computing: Computing = USUAL) -> Scorer:
    """Load the language model of a specification, or of the text of one: a model directory of ours
    (neural or n-gram), a KenLM or ARPA file, `hf:DIR` (a Hugging Face directory), the name of an
    installed model, a mixture of such, `mix:LM=WEIGHT,LM=WEIGHT`, or a kind that a door brings.

    UserError for a model that cannot do what is asked: n-grams and those of Hugging Face do not
    score without normalisation, only sampled criteria have noise, and a translation model and
    `pairs` of texts need each other.
    """
    spec = LMSpec.parse(spec) if isinstance(spec, str) else spec
    if spec.adapter and find_loader(spec.lm) is not load_foreign:
        raise UserError(f"{spec.lm}: adapters are of Hugging Face models; leave adapter= out")
    scorer = load_kind(spec, computing)
    if spec.pairs and not scorer.pairs:
        raise UserError(
            f"{spec.lm}: no translation model, so it reads no source; leave --source out"
        )
    scorer = scorer.with_oov_penalty(spec.oov_penalty)
    scorer.reload = partial(load, spec, computing)
    return scorer


def load_kind(spec: LMSpec, computing: Computing) -> Scorer:
    """Load the scorer of the model's kind; UserError where what it needs is missing."""
    try:
        return find_loader(spec.lm)(spec, computing)
    except ImportError as error:
        check_packages(spec.lm)  # whose extra brings all that the kind needs
        raise explain_missing(error, f"{spec.lm}:") from None


def find_loader(lm: str) -> Callable[[LMSpec, Computing], Scorer]:
    """Return what loads models of the kind of `lm`."""
    path = Path(lm)
    for prefix, loader in LOADERS.items():
        if lm.startswith(prefix):
            return loader
    if place := find_place(lm):
        return load_place(place[0])
    if lm.startswith(LLMS):
        raise lacks("llms", lm)
    if (path / "config.json").exists():
        return load_foreign
    return load_neural if (path / WEIGHTS).exists() else load_ngram


def load_mixture(spec: LMSpec, computing: Computing) -> Scorer:
    """Load the models of `mix:LM=WEIGHT,LM=WEIGHT`."""
    from lmtools.score.mixture import MixtureScorer

    refuse_options(spec, "mixes probabilities", "mixes probabilities")
    lms, weights = parse_mixture(spec.lm)
    parts = [load_kind(replace(spec, lm=part, pairs=False), computing) for part in lms]
    return MixtureScorer(parts, weights, lms, spec)


def load_foreign(spec: LMSpec, computing: Computing) -> Scorer:
    """Load the model of a Hugging Face directory."""
    # transformers is an optional dependency
    from lmtools.score.huggingface_trees import load_huggingface

    refuse_options(spec, UNTRAINED, UNNORMALISED.format("a Hugging Face"))
    if computing.engine == "onnx":
        raise UserError(f"{spec.lm}: onnx is of models of `lmtools train`; leave --engine out")
    return load_huggingface(spec, computing)


def load_ngram(spec: LMSpec, computing: Computing) -> NgramScorer:
    """Load an n-gram model: a directory, or a KenLM or ARPA file."""
    refuse_options(spec, UNTRAINED, UNNORMALISED.format("an n-gram"))
    path = Path(spec.lm)
    if not path.exists():
        raise UserError(
            f"{spec.lm}: no such language model; give a model directory, a KenLM or ARPA file,"
            f" hf:DIR, or the name of an installed model ({list_models()})"
        )
    for folder in path.parents[:2] if path.suffix in PARTS and path.is_file() else ():
        if any((folder / name).exists() for name in (CONFIG, "config.json")):
            raise UserError(f"{spec.lm}: a file of a model; give its directory, {folder}")
    if path.is_dir() and not (path / CONFIG).exists():
        raise UserError(
            f"{spec.lm}: holds no language model (no {CONFIG}); give what `lmtools train` or"
            " `lmtools ngram` wrote"
        )
    return NgramScorer(NgramModel.load(path), spec)


def load_neural(spec: LMSpec, computing: Computing) -> Scorer:
    """Load a model of `lmtools train`."""
    # torch takes seconds to import, and n-grams do without
    from lmtools.models.checkpoint import load_model, model_hash
    from lmtools.score.neural import NeuralScorer, TwoWayScorer, correct_by
    from lmtools.score.translation import TranslationScorer

    model, subword = load_model(spec.lm, spec.pairs)
    noise = correct_by(model, subword, spec.noise) if spec.noise else None
    kind = TwoWayScorer if model.two_way else NeuralScorer
    kind = TranslationScorer if model.objective.pairs else kind
    scorer = kind(model, subword, model_hash(spec.lm), spec=spec, computing=computing)
    scorer.signature |= {"noise": noise} if noise else {}
    return scorer


def refuse_options(spec: LMSpec, without_noise: str, normalised: str) -> None:
    """Raise UserError, with the cause, for options that only neural models of ours have."""
    if spec.noise:
        raise UserError(f"{spec.lm}: {without_noise}; leave noise={spec.noise} out")
    if spec.normalise != "full":
        raise UserError(f"{spec.lm}: {normalised}; leave normalise={spec.normalise} out")


def check_packages(lm: str) -> None:
    """Raise UserError where a package that the kind of `lm` needs is missing; load nothing."""
    for part in parse_mixture(lm)[0] if lm.startswith(MIX) else [find_model(lm)]:
        place = find_place(part)
        module = place[2] if place else PACKAGES[find_loader(part)]
        if importlib.util.find_spec(module) is None:
            raise explain_missing(ImportError(name=module), f"{part}:")


UNTRAINED = "no model of `lmtools train`, so without noise"
UNNORMALISED = "{} model has no score without normalisation"
# by what a specification begins with
LOADERS: dict[str, Callable[[LMSpec, Computing], Scorer]] = {MIX: load_mixture, HF: load_foreign}
PACKAGES = {load_neural: "torch", load_foreign: "transformers", load_ngram: "kenlm"}
