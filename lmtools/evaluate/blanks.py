"""Texts without blanks between words, as Chinese, Japanese and Thai are written: what the metrics
of words count there, and which metric to take.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lmtools.evaluate.metrics import METRICS, find_metric

LOOKED_AT = 2000  # texts
SHARE = 0.2  # of all letters, from which texts are of a language
KANA = 0.05  # of Chinese characters and kana, from which these are Japanese
SEVERAL = 5  # texts of one word each, from which that is no accident
CHINESE, JAPANESE = "Chinese", "Japanese"
# The beginning of a letter's Unicode name -> the language.
SCRIPTS = {
    "CJK": CHINESE,
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"), JAPANESE),
    **{name.upper(): name for name in ("Thai", "Lao", "Khmer", "Tibetan")},
    "MYANMAR": "Burmese",
}
# The letters a word, on average, that no language has which puts blanks between words.
LONG = {CHINESE: 4, JAPANESE: 4}
LONG_ELSEWHERE = 5
# Metrics that take what stands between blanks for a word, and language (None: of the others) -> the
# one to take, None where it is right.
OF_WORDS: dict[tuple[str, ...], dict[str | None, str | None]] = {
    ("wer",): {None: "cer:blanks=no"},
    ("mer",): {CHINESE: None, None: "cer:blanks=no"},
    ("bleu", "bleu:tokenize=intl", "bleu:tokenize=none"): {
        CHINESE: "bleu:tokenize=zh",
        JAPANESE: "bleu:tokenize=ja-mecab",
        None: "bleu:tokenize=char",
    },
    ("ter", "ter:normalized=yes"): {CHINESE: "ter:normalized=yes,asian=yes", None: "chrf"},
}
REMEDIES = {name: remedies for names, remedies in OF_WORDS.items() for name in names}
OF_CHARACTERS = "cer", "cer:blanks=no"  # the metric that blanks matter to, and the one without


@dataclass(frozen=True)
class Spacing:
    """Language of texts written without blanks (None: others), and whether they have blanks."""

    language: str | None
    blanks: bool = False


def find_spacing(texts: Iterable[str]) -> Spacing:
    """Find the language of the first LOOKED_AT texts and how they use blanks."""
    letters: Counter = Counter()
    words, lines = 0, 0
    known: dict[str, str | None] = {}  # the language of a letter
    for text, _ in zip(texts, range(LOOKED_AT), strict=False):
        counts = Counter(filter(str.isalpha, text))
        letters.update(counts)
        for letter in counts.keys() - known.keys():
            name = unicodedata.name(letter, "")
            known[letter] = next((SCRIPTS[b] for b in SCRIPTS if name.startswith(b)), None)
        spoken = sum(any(map(known.get, word)) for word in text.split())
        words, lines = words + spoken, lines + bool(spoken)
    languages: Counter = Counter()
    for letter, count in letters.items():
        if known[letter]:
            languages[known[letter]] += count
    size = languages.total()
    if size <= SHARE * letters.total() or not size:
        return Spacing(None)
    language = languages.most_common(1)[0][0]
    if languages[JAPANESE] > KANA * (languages[CHINESE] + languages[JAPANESE]):
        language = max(JAPANESE, language, key=lambda name: languages[name] * (name != CHINESE))
    alone = words == lines >= SEVERAL and size > words
    return Spacing(language, not alone and size < LONG.get(language, LONG_ELSEWHERE) * words)


def advise_metric(refs: Iterable[str], hyps: Iterable[str], metric: str, source) -> Iterator[str]:
    """Yield a warning about a metric that does not fit how texts of `source` are written."""
    sides = [side for side in (find_spacing(refs), find_spacing(hyps)) if side.language]
    bare = next((side.language for side in sides if not side.blanks), None)
    name, title = find_metric(metric)[0], METRICS[metric].title
    remedy = remedy_of(name, bare) if bare and name in REMEDIES else None
    if remedy:
        cause = f"{bare} without blanks between words, so that {title} takes a phrase for a word"
    elif name == OF_CHARACTERS[0] and any(side.blanks for side in sides):
        remedy = OF_CHARACTERS[1]
        cause = f"{sides[0].language} with blanks, which CER counts as characters"
    else:
        return
    yield f"warning: {source}: {cause}; take --metric {remedy}"


def remedy_of(metric: str, language: str) -> str | None:
    """Return the metric to take in place of one of words between blanks."""
    remedies = REMEDIES[metric]
    return remedies.get(language, remedies[None])
