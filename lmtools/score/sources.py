"""Source sentences of the hypotheses of lists, for translation models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.formats import kaldi_text, plain
from lmtools.formats.lists import other_number
from lmtools.types import NBest


@dataclass(frozen=True)
class Sources:
    """The source sentences of lists, by utterance or as lines in the lists' order.

    A hypothesis is scored given its source; with `reverse` the source given the hypothesis, by a
    model of that direction (the channel of Yee et al. 2019).
    """

    path: str
    texts: Mapping[str, str] | Sequence[str]
    reverse: bool = False

    @classmethod
    def read(cls, path: str, lines: bool = False, reverse: bool = False) -> "Sources":
        """Read the sources in a file: Kaldi text, or plain text where it is `lines`."""
        return cls(path, (plain if lines else kaldi_text).read(path), reverse)

    @property
    def signature(self) -> dict[str, str]:
        """Return the entries for the header of scores: the direction, where it is reversed."""
        return {"direction": "reverse"} if self.reverse else {}

    def pair(self, nbests: Sequence[NBest], before: int, lists: str) -> list[tuple[str, str]]:
        """Return (source, target) for a translation model, of each hypothesis of lists behind the
        first `before` ones of the file `lists`; UserError where a source is missing.
        """
        pairs = []
        for number, nbest in enumerate(nbests, before):
            text = self.source_of(nbest.utt, number, lists)
            pairs += [(hyp.text, text) if self.reverse else (text, hyp.text) for hyp in nbest.hyps]
        return pairs

    def source_of(self, utt: str, number: int, lists: str) -> str:
        """Return the source of an utterance, which is the list of this number from 0."""
        if isinstance(self.texts, Mapping):
            if utt not in self.texts:
                raise UserError(
                    f"{self.path}: no source for utterance {utt!r} of {lists}; make the ids the"
                    " same on both sides"
                )
            return self.texts[utt]
        if number >= len(self.texts):
            raise other_number(
                self.path, len(self.texts), f"{number + 1} utterances or more", lists
            )
        return self.texts[number]

    def check_number(self, utterances: int, lists: str) -> None:
        """Raise UserError where lines are more than the utterances of all `lists`."""
        if not isinstance(self.texts, Mapping) and utterances < len(self.texts):
            raise other_number(self.path, len(self.texts), f"{utterances} utterances", lists)
