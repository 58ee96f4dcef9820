"""Noise at scoring time other than in training (Gao et al. 2021, Table 4)."""

import hashlib

from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pair
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import count_targets, excluded_ids
from lmtools.models.outputs.noise import NOISES
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.text.corpus import Corpus


def correct_by(lm: LanguageModel, subword, spec: str, power: float) -> str:
    """Let outputs be corrected by the noise that `spec`, KIND=F, says in place of that of training:
    KIND over how often ids are targets in the binarised corpus F, unigram to `power`.

    What identifies the noise is returned. UserError for a criterion whose scores have no noise in
    them, and for a corpus of another vocabulary.
    """
    kind, path = parse_pair(spec, "noise", "KIND=F.bin", f"KIND is one of {', '.join(NOISES)}")
    if kind not in NOISES:
        raise UserError(f"noise={spec}: no noise {kind!r}; known: {', '.join(NOISES)}")
    if not getattr(lm.output, "corrected", False):
        able = ", ".join(name for name, output in SAMPLED.items() if output.corrected)
        raise UserError(
            f"noise={spec}: scores of a model trained with {lm.settings.criterion} have no noise"
            f" in them, those of {able} have; leave noise out"
        )
    corpus = Corpus.open(path).check_pairs(lm.objective.pairs, f"noise={kind}")
    if corpus.subword.hash != subword.hash:
        raise UserError(
            f"{path}: binarised with another vocabulary than the model's; give the corpus that the"
            " model was trained on"
        )
    counts = count_targets(lm.objective, corpus, len(lm.output.noise))
    noise = NOISES[kind](counts, excluded_ids(lm.objective), power)
    lm.output.correct_by(noise)
    return f"{kind} {hashlib.sha256(noise.probability.tobytes()).hexdigest()[:16]}"
