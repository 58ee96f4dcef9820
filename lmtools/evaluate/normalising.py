"""Hypotheses and references normalised alike before they are compared."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import Evaluation
from lmtools.evaluate.inputs import Texts
from lmtools.formats import edits
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.unify import unifier

UNSAID = "norm:none"  # in the signatures of error rates


@dataclass(frozen=True)
class TextRules:
    """A function text -> text for both sides, or a global map of NIST, which has rules for each
    side, and what signatures say of it.
    """

    change: Callable[[str], str]
    signature: str
    glm: Any = None

    @classmethod
    def read(
        cls, forms: Sequence[str], normaliser: str | None, map_words: str | None
    ) -> "TextRules | None":
        """Return the rules of forms of Unicode (names in UNIFIERS), after them of a normaliser's
        spec, and then of a file of other words for some, as `lmtools convert` has them; None
        without any.
        """
        if not (forms or normaliser or map_words):
            return None
        unify, normalise = unifier(forms), parse_normaliser(normaliser or "none")
        spellings = edits.read_spellings(map_words) if map_words else {}
        rule_signatures = [normalise.signature] if normaliser or not forms else []
        signature = "+".join([*forms, *rule_signatures])
        if map_words:
            content = hashlib.sha256(json.dumps(spellings, sort_keys=True).encode())
            signature += f"+{Path(map_words).name}:{content.hexdigest()[:8]}"
        change = cache(lambda text: edits.spell(normalise(unify(text)), spellings))
        return cls(change, signature)

    @classmethod
    def read_map(cls, path, others: Sequence) -> "TextRules":
        """Return the rules of a global map; UserError beside `others`."""
        if any(others):
            raise UserError(
                f"{path}: --glm has rules of words of its own; leave out --normaliser, --unify and"
                " --map-words"
            )
        glm = open_door("nist", "glm:GlobalMap", "--glm")(path)
        return cls(str, glm.signature, glm)

    def rewrite(self, source: Texts, side: str = "hyp") -> Texts:
        """Return the texts of a file, and its lists with their references, by the rules; `side`
        (ref or hyp): what the texts are.
        """
        kind = "trn" if source.form == "trn" else None
        hyps, refs = self.find_change("hyp", kind), self.find_change("ref", kind)
        lists = source.lists and tuple(
            edits.rewrite_list(nbest, hyps, refs) for nbest in source.lists
        )
        change = refs if side == "ref" else hyps
        texts = {utt: change(text) for utt, text in source.texts.items()}
        return replace(source, texts=texts, lists=lists)

    def find_change(self, side: str, kind: str | None = None) -> Callable[[str], str]:
        """Return what rewrites a text of a side. A global map takes references as an stm and
        hypotheses as a ctm, word by word, unless they come from a trn.
        """
        if not self.glm:
            return self.change
        kind = kind or ("stm" if side == "ref" else "ctm")
        return cache(partial(self.glm.rewrite, kind=kind, side=side))

    def sign(self, result: Evaluation) -> Evaluation:
        """Return the result with the rules in its signature."""
        signature, rules = result.signature, f"norm:{self.signature}"
        signed = signature.replace(UNSAID, rules) if UNSAID in signature else f"{signature}|{rules}"
        return replace(result, signature=signed)
