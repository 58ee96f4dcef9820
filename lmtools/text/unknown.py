"""Text that a model hardly knows a word of, or would learn more than words of: how much, which, and
why.
"""

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lmtools.base.log import say
from lmtools.text.normaliser import CASES, NORMALISERS, Normaliser
from lmtools.text.unify import UNIFIERS, unifier

MANY = 0.2  # the share of unknown tokens from which a text is hardly of the model's kind
KNOWN = 0.8  # of the parts of a word, of letters say, from which it is explained
LOOKED_AT = 10_000  # texts in which the words are sought
# Forms of Unicode that the options below do not bring about
FORMS = ("nfc", "invisible", "separators", "digits", "nfkc")


def describe_case(case: Normaliser) -> str:
    rules = f" by the rules of {case.language}" * (case.language != "none")
    return f"in {case.case} case{rules}"


# How unknown words may be written to be known: the options of lmtools convert, and what they do
CHANGES = {
    **{name: (describe_case(case), case) for name, case in CASES.items()},
    "--apostrophe straight": ("with straight apostrophes", Normaliser(apostrophe="straight")),
    "--punctuation strip": ("without punctuation", Normaliser(punctuation="strip")),
    **{f"--unify {name}": (UNIFIERS[name].about, unifier([name])) for name in FORMS},
    "--normaliser none:letters=split": ("letter by letter", Normaliser(letters="split")),
    "--normaliser librispeech": ("in lower case without punctuation", NORMALISERS["librispeech"]),
    "--normaliser librispeech --case upper": (
        "in upper case without punctuation",
        Normaliser("upper", "strip", "straight", "NFKC"),
    ),
}

# What the lines of a text may hold beside its words: how they look, and what takes it away
KINDS = {
    "times": (r"\[?\d+:\d\d[\d:.,]*.*", "sed 's/^\\[[^]]*\\] *//'"),
    "columns": (r"[^|]+\|.+", "cut -d'|' -f2"),
    "columns with tabs": (r"[^\t]+\t.+", "cut -f2"),
    "numbers of lines": (r"\d+[.):] .*", "sed 's/^[0-9]*[.):] *//'"),
    "utterance ids at their ends": (r".* \(\S*\d\S*\)", "sed 's/ *([^ ]*)$//'"),
    "utterance ids": (r"(?=\S*\d)(?=\S*[-_]|\S*\d{3})\S+ .*", "cut -d' ' -f2-"),
    "tags": (r".*</?(?!s>|unk>)\w+[^>]*>.*", "sed 's/<[^>]*>//g'"),
    "parts of speech": (r"(\S+/[A-Z$]+ ?)+", "sed 's,/[A-Z$]*,,g'"),
}
FEW, MOST = 20, 0.9  # lines that say something, and the share of them that are of a kind
# Marks of subword-nmt, SentencePiece and BERT, and the share of words from which they are meant
PIECE = re.compile(r"\S+@@|(?:▁|##)\w\S*")
MEANT = 0.01
JOINED = "lmtools convert --unify pieces LISTS NEW"
MANY_IDS = 200  # lines that do not begin with different words each


def doubt_text(path, lines: Iterable[str]) -> Iterator[str]:
    """Yield a warning where most first `lines` of a text hold more than words, with a remedy."""
    lines = [line for line in itertools.islice(lines, LOOKED_AT // 10) if line.strip()]
    for kind, (pattern, command) in KINDS.items() if len(lines) >= FEW else ():
        alike = sum(bool(re.fullmatch(pattern, line)) for line in lines) > MOST * len(lines)
        if alike or (kind == "utterance ids" and begin_with_ids(lines)):
            yield (
                f"warning: {path}: its lines have {kind} ({lines[0][:30]!r}), which a model learns"
                f" as words; {command} {shlex.quote(str(path))} > NEW takes them away"
            )
            break
    yield from doubt_pieces(path, lines, f"utils/unify.py pieces < {shlex.quote(str(path))} > NEW")


def doubt_pieces(path, texts: Iterable[str], remedy: str = JOINED) -> Iterator[str]:
    """Yield a warning where words of the first texts are pieces of words, with what joins them."""
    words = [word for text in itertools.islice(texts, LOOKED_AT // 10) for word in text.split()]
    pieces = list(filter(is_piece, words))
    if len(pieces) > 1 and len(pieces) > MEANT * len(words):
        share = f"{len(pieces) / len(words):.0%} of its words are pieces ({pieces[0]!r})"
        yield f"warning: {path}: {share}, which count as words here; join them: {remedy}"


def is_piece(word: str) -> bool:
    return PIECE.fullmatch(word) is not None


def begin_with_ids(lines: Sequence[str]) -> bool:
    """Return whether the first words of lines all differ, as only ids do in many lines or if they
    have digits.
    """
    firsts, rests = zip(*(line.strip().partition(" ")[::2] for line in lines), strict=True)
    odd = len(lines) >= MANY_IDS or all(re.search(r"\d", first) for first in firsts)
    return odd and len({*firsts}) == len(lines) and all(rests)


def explain(unknown: Mapping[str, int], known: Callable[[str], bool]) -> tuple[str, str]:
    """Return why words with these counts may be unknown, and options that mend it ('': none)."""
    total, changed = sum(unknown.values()), {}
    for option, (_, change) in CHANGES.items():
        better = {word: change(word).split() for word in unknown}
        changed[option] = sum(
            unknown[word]
            for word, parts in better.items()
            if parts and parts != [word] and sum(map(known, parts)) > KNOWN * len(parts)
        )
    option = max(changed, key=changed.get)  # of equal ones the first, which changes least
    if changed[option] > 0.5 * total:
        return f"most of them are known {CHANGES[option][0]}", option
    return "another language or kind of text, or other tokens?", ""


def conversion(option: str) -> str:
    """Return the command that rewrites both sides; --case alone would leave references."""
    return f"lmtools convert {'--normaliser none ' * option.startswith('--case')}{option}"


def unknown_words(texts: Iterable[str], known: Callable[[str], bool]) -> Counter[str]:
    """Return the words of the first texts that are not known, with counts, but `<unk>` itself."""
    counts = Counter(word for text in itertools.islice(texts, LOOKED_AT) for word in text.split())
    return Counter(
        {word: count for word, count in counts.items() if word != "<unk>" and not known(word)}
    )


def warn_unknown(path, *counts_and_model, **more) -> None:
    """Print the line of `describe_unknown` on standard error, if there is one."""
    for line in describe_unknown(path, *counts_and_model, **more):
        say(line)


def describe_unknown(
    path,
    unknown: int,
    tokens: int,
    model,
    texts: Iterable[str] = (),
    known: Callable[[str], bool] | None = None,
    lists: bool = False,
) -> Iterator[str]:
    """Yield one line where more than MANY of `tokens` are `unknown`, with such words of `texts` by
    `known`; `lists`: `path` holds N-best lists.
    """
    if unknown <= MANY * tokens:
        return
    line = f"warning: {path}: {unknown / tokens:.0%} of {tokens:,} tokens are unknown to {model}"
    words = unknown_words(texts, known) if known else Counter()
    if words:
        cause, option = explain(words, known)
        line += f", most often {', '.join(repr(word) for word, _ in words.most_common(3))}: {cause}"
    if words and option:
        script = option.replace("--unify", "utils/unify.py")
        does = f"{option} of lmtools subword and ngram does" if script == option else script
        here = f"write it so, as {does}"
        remedy = conversion(option) if lists else here
    elif lists:
        remedy = f"lmtools doctor --nbest {path} --lm {model} says more"
    else:
        remedy = "give text like that of the model's vocabulary"
    yield f"{line}; {remedy}"
