"""How people write a language: case where its rules are not those of all others (Turkish,
Azerbaijani, Lithuanian; Unicode's SpecialCasing.txt), and tokenised translations in plain form
again.
"""

import re
from collections.abc import Callable

from lmtools.base.errors import UserError, explain_missing

# What becomes other letters before the change of case that all languages share.
TURKIC = {"lower": (("I\u0307", "i"), ("İ", "i"), ("I", "ı")), "upper": (("i", "İ"),)}
# Lithuanian keeps the dot of i and j below an accent.
ACCENTS = "\u0300\u0301\u0303"
LITHUANIAN = {
    "lower": (
        *zip("ÌÍĨ", (f"i\u0307{accent}" for accent in ACCENTS), strict=True),
        *(
            (f"{letter}{accent}", f"{letter.lower()}\u0307{accent}")
            for letter in "IJĮ"
            for accent in ACCENTS
        ),
    ),
    "upper": tuple((f"{letter}\u0307", letter.upper()) for letter in "ijį"),
}
# Language -> case -> what is replaced, in this order, and by what
CASINGS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "none": {"lower": (), "upper": ()},
    "tr": TURKIC,
    "az": TURKIC,
    "lt": LITHUANIAN,
}
LANGUAGE = re.compile(r"[a-z]{2,3}")


def change_case(text: str, case: str, language: str = "none") -> str:
    """Return the text in lower or upper case by the rules of the language."""
    for old, new in CASINGS[language][case]:
        text = text.replace(old, new)
    return text.lower() if case == "lower" else text.upper()


def detokeniser(language: str) -> Callable[[str], str]:
    """Return a function from tokenised to detokenised lines of `language` (ISO 639), subword marks
    joined; UserError without sacremoses.
    """
    if not LANGUAGE.fullmatch(language):
        raise UserError(f"--detokenise {language}: not a language code; write en, de, fr ..")
    try:
        from sacremoses import MosesDetokenizer
    except ImportError as error:
        raise explain_missing(error, f"--detokenise {language}") from None
    rules = MosesDetokenizer(lang=language)
    return lambda text: rules.detokenize(text.split())
