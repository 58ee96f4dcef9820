"""Tokenised translations written as people write them, by sacremoses' Moses detokeniser."""

import re
from collections.abc import Callable

from lmtools.base.errors import UserError
from lmtools.base.extras import explain_missing

LANGUAGE = re.compile(r"[a-z]{2,3}")


def detokeniser(language: str) -> Callable[[str], str]:
    """Return a function from tokenised to detokenised lines of `language` (ISO 639: en, de, fr ..).

    Also undoes Moses's escapes (`&apos; &quot; &amp; &#124;` ..) and split hyphens (` @-@ `);
    subword marks have to be joined before. English, French, Italian, Irish, Czech, Finnish and CJK
    scripts have rules of their own, all others share one set. UserError for what is no language
    code, and without sacremoses.
    """
    if not LANGUAGE.fullmatch(language):
        raise UserError(f"--detokenise {language}: not a language code; write en, de, fr ..")
    try:
        from sacremoses import MosesDetokenizer
    except ImportError as error:
        raise explain_missing(error, f"--detokenise {language}") from None
    rules = MosesDetokenizer(lang=language)
    return lambda text: rules.detokenize(text.split())
