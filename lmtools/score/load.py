"""The one place where a language model of any kind is loaded to score."""

from dataclasses import replace
from pathlib import Path

from lmtools.checkpoint import CONFIG, load_model, model_hash
from lmtools.computing import USUAL, Computing
from lmtools.errors import UserError
from lmtools.ngram.model import NgramModel
from lmtools.score.base import Scorer
from lmtools.score.mixture import MixtureScorer
from lmtools.score.neural import NeuralScorer, TranslationScorer, TwoWayScorer
from lmtools.score.ngram import NgramScorer
from lmtools.score.noise import correct_by
from lmtools.specs import HF, MIX, LMSpec, parse_mixture


def load(spec: LMSpec | str, computing: Computing = USUAL) -> Scorer:
    """Load the language model of a specification, or of the text of one: a model directory of ours
    (neural or n-gram), a KenLM or ARPA file, `hf:DIR` (a Hugging Face directory), or a mixture of
    such, `mix:LM=WEIGHT,LM=WEIGHT`.

    UserError for a model that cannot do what is asked: n-grams and those of Hugging Face do not
    score without normalisation, only sampled criteria have noise, and a translation model and
    `pairs` of texts need each other.
    """
    spec = LMSpec.parse(spec) if isinstance(spec, str) else spec
    scorer = load_kind(spec, computing)
    if spec.pairs and not scorer.pairs:
        raise UserError(
            f"{spec.lm}: no translation model, so it reads no source; leave --source out"
        )
    return scorer.with_oov_penalty(spec.oov_penalty)


def load_kind(spec: LMSpec, computing: Computing) -> Scorer:
    """Load the scorer of the model's kind, without the penalty of unknown tokens."""
    lm, normalise = spec.lm, f"normalise={spec.normalise}"
    if lm.startswith(MIX):
        if spec.noise or spec.normalise != "full":
            refuse(lm, "mixes probabilities", f"noise={spec.noise}" if spec.noise else normalise)
        lms, weights = parse_mixture(lm)
        parts = [load_kind(replace(spec, lm=part, pairs=False), computing) for part in lms]
        return MixtureScorer(parts, weights, lms, spec)
    path, foreign = Path(lm), lm.startswith(HF) or (Path(lm) / "config.json").exists()
    neural = not foreign and (path / "model.safetensors").exists()
    if spec.noise and not neural:
        refuse(lm, "no model of `lmtools train`, so without noise", f"noise={spec.noise}")
    if not neural and spec.normalise != "full":
        kind = "a Hugging Face" if foreign else "an n-gram"
        refuse(lm, f"{kind} model has no score without normalisation", normalise)
    if foreign:
        # transformers is an optional dependency
        from lmtools.score.huggingface_trees import load_huggingface

        if computing.engine == "prepared":
            raise UserError(f"{lm}: a Hugging Face model runs in torch; leave --engine out")
        return load_huggingface(spec, computing)
    if not path.exists():
        raise UserError(
            f"{lm}: no such language model; give a model directory, a KenLM or ARPA file, or hf:DIR"
        )
    if not neural:
        if path.is_dir() and not (path / CONFIG).exists():
            raise UserError(
                f"{lm}: holds no language model (no {CONFIG}); give what `lmtools train` or"
                " `lmtools ngram` wrote"
            )
        return NgramScorer(NgramModel.load(path), spec)
    model, subword = load_model(path, spec.pairs)
    noise = (
        {"noise": correct_by(model, subword, spec.noise, spec.noise_power)} if spec.noise else {}
    )
    kind = TwoWayScorer if model.two_way else NeuralScorer
    kind = TranslationScorer if model.objective.pairs else kind
    scorer = kind(model, subword, model_hash(path), spec, computing)
    scorer.signature |= noise
    return scorer


def refuse(lm: str, cause: str, option: str) -> None:
    """Raise UserError for an option that the model cannot have."""
    raise UserError(f"{lm}: {cause}; leave {option} out")
