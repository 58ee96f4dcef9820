"""Encoders turn prepared texts into sentence vectors, layer by layer; one class a kind of model."""

from pathlib import Path

from lmtools.checkpoint import WEIGHTS, load_model, model_hash
from lmtools.computing import USUAL, Computing
from lmtools.device import batch_rows, choose_device, numerics, resolve_precision
from lmtools.embed.base import Encoder
from lmtools.embed.contextual import BatchStates, ContextualEncoder, PoolingOptions
from lmtools.embed.static import StaticVectors
from lmtools.embed.tfidf import Tfidf
from lmtools.engine import describe_engine, prepare, resolve_engine
from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.subword import MASK
from lmtools.version import __version__
from lmtools.windows import count_rows


class NeuralEncoder(ContextualEncoder):
    """A model trained by `lmtools train`, of any family; of two-way models positions are words.

    Left-to-right models never read the end of sentence: `eos` is the state that predicts it, after
    the last token, and there is no `cls`.
    """

    def __init__(
        self,
        lm: LanguageModel,
        subword,
        source,
        identity,
        pooling: PoolingOptions,
        computing: Computing,
    ):
        self.device = choose_device(computing.device)
        self.precision = resolve_precision(computing.precision, self.device, integers=True)
        engine = resolve_engine(computing.engine, self.precision, self.device)
        self.rows = batch_rows(computing.rows, self.device)
        self.lm, self.subword, self.longest = lm.to(self.device).eval(), subword, lm.longest
        if computing.engine == "prepared":
            prepare(self.lm, self.precision)
        self.take_trunk(lm.trunk, pooling, source, lm.trunk.masks, lm.objective.boundary > 1)
        self.signature = {
            "lm": lm.settings.model, "model": identity[:16], "vocabulary": subword.hash[:16],
            **pooling.signature,
            **numerics(self.precision, self.device, self.rows), "version": __version__,
            **describe_engine(engine, self.precision),
        }  # fmt: skip

    def prepare(self, texts):
        return [tuple(ids) for ids in self.subword.encode_batch(texts)]

    def cost(self, sentence):
        return count_rows(
            len(sentence), self.longest, self.lm.objective.boundary, self.pooling.masked
        )

    def read(self, sentences):
        examples = self.lm.objective.scoring(sentences).to(self.device)
        last = self.lm.objective.boundary - 1
        return BatchStates(self.chosen_states(examples.read, MASK), examples.lengths, 1, last)


class TwoWayEncoder(NeuralEncoder):
    """A two-way model, whose positions are words of several tokens: windows are not cut, any number
    of words fits.
    """

    def cost(self, sentence):
        return len(self.subword.words.split(sentence)) + self.lm.objective.boundary

    def pool_parts(self, parts):
        split = self.subword.words.split
        return super().pool_parts([(part, 0, len(split(part))) for part, _, _ in parts])


LAST_MEAN = PoolingOptions()
STATICS = {"words": StaticVectors, "tfidf": Tfidf}


def load_encoder(
    lm: str, pooling: PoolingOptions = LAST_MEAN, computing: Computing = USUAL
) -> Encoder:
    """Load the encoder of `lm`: a model directory of ours, hf:DIR (Hugging Face), words:F (vectors
    in a file), tfidf or tfidf:TEXT.
    """
    kind, _, rest = lm.partition(":")
    if kind == "tfidf" or (kind == "words" and rest):
        if pooling not in [PoolingOptions(layers) for layers in ("last", "all", (0,))]:
            raise UserError(
                f"{lm}: static vectors have layer 0 and the mean alone; leave --layer, --pool,"
                " --boundaries and --masked out"
            )
        return STATICS[kind](rest or None)
    if kind == "hf" or (Path(lm) / "config.json").exists():
        # transformers is an optional dependency
        from lmtools.embed.huggingface import load_huggingface

        if computing.engine == "prepared":
            raise UserError(f"{lm}: a Hugging Face model runs in torch; leave --engine out")
        return load_huggingface(lm, pooling, computing)
    path = Path(lm)
    if not (path / WEIGHTS).exists():
        kinds = "the directory of a neural model, hf:DIR, words:F or tfidf"
        raise UserError(
            f"{lm}: {'an n-gram model has no vectors' if path.exists() else 'no such model'}; give"
            f" {kinds}"
        )
    model, subword = load_model(path)
    return (TwoWayEncoder if model.two_way else NeuralEncoder)(
        model, subword, lm, model_hash(path), pooling, computing
    )
