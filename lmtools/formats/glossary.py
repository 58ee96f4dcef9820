"""Glossaries with the speakers of their utterances."""

from lmtools.base.log import say_lines
from lmtools.formats import kaldi_text
from lmtools.text.phrases import Glossary, PhraseSpec, read_glossary


def load_glossary(spec: PhraseSpec) -> Glossary:
    """Read the glossary of a specification, and the speakers of its utt2spk; say how it was read if
    it is another program's.
    """
    glossary = read_glossary(spec, kaldi_text.read(spec.utt2spk) if spec.utt2spk else None)
    say_lines(glossary.notes)
    return glossary
