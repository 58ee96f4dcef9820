"""What scorers say of words that they do not know."""

from collections.abc import Iterable

from lmtools.score.texts import ScoreOptions
from lmtools.text.unknown import MANY, warn_unknown


def warn_scored(
    path,
    texts: Iterable[str],
    unknown: int,
    tokens: int,
    options: ScoreOptions,
    lists: bool = False,
) -> None:
    """`warn_unknown` of what was scored: of `texts` from `path`, `unknown` tokens among `tokens`,
    their ends not counted.
    """
    if unknown <= MANY * tokens:
        return
    scorer = options.load()  # once more: this is rare, and scores come from other processes too

    def known(word: str) -> bool:
        return not scorer.unknown(scorer.prepare([word])[0]).any()

    warn_unknown(path, unknown, tokens, options.lm, map(scorer.normalise, texts), known, lists)
