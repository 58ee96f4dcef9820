"""A ctm beside an stm as texts by segment, for evaluation."""

from lmtools.evaluate.inputs import Texts
from lmtools.evaluate.nist.segments import CutTexts, cut_words
from lmtools.formats import detect
from lmtools.formats.texts import KALDI
from lmtools.text.glm import GlobalMap

TIMED = ("stm", "ctm")  # formats of references and of hypotheses


def are_timed(ref: str, hyp: str, specs: tuple[str | None, str | None]) -> bool:
    """Return whether a file of references is an stm and one of hypotheses a ctm; `specs`: their
    formats where they are named.
    """
    names = [
        spec or (KALDI if path == "-" else detect(path, KALDI))
        for path, spec in zip((ref, hyp), specs, strict=True)
    ]
    return tuple(names) == TIMED


def load_cut(ref: str, hyp: str, glm: GlobalMap | None) -> tuple[Texts, Texts, CutTexts]:
    """Load references and hypotheses by segment, rewritten by a global map if there is one."""
    cut = cut_words(ref, hyp, glm)
    return Texts(ref, cut.refs, form=TIMED[0]), Texts(hyp, cut.hyps, form=TIMED[1]), cut
