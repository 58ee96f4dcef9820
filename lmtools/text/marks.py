"""Marks: what recognisers write where no word was said - noise, silence, unknown words, music.

[noise] <unk> </s> (laughter) ++breath++ !SIL       of Kaldi, HTK, Sphinx
[Music playing] (applause) *sighs* ♪ <|endoftext|>  of Whisper
the red</s> |0-1| fox |2-2|                         of Marian's pieces, Moses's segments

Loops: what a recogniser says again and again when its decoder runs wild, as in `it was a poor poor
poor poor`, also inside a word or a line without blanks: `hahahahahahahaha`, `谢谢谢谢谢谢`.
"""

import re
import string
import unicodedata
from collections.abc import Sequence

from lmtools.text.scripts import join_characters

MARK = re.compile(
    r"<\|[^|\s]*\|>|</?s>|(?<!\S)\|\d+-\d+(?:,[^|\s]*)?\|(?!\S)|[♩♪♫♬🎵🎶]+"
    r"|(?<!\w)(?:</?[a-z]+>|\[[^\[\]]+\]|\((?=[^()]*[a-z])[^()]+\)"
    r"|\*(?=[a-z])[^*]*[a-z]\*|\+\+[^\s+]+\+\+|!sil|!null)(?!\w)",
    re.IGNORECASE,
)
COPIES = 3  # in a row make a loop; people say a word or a phrase twice
PHRASE = 100  # words at most, so that time grows as the text does
LOOPING = 4  # words in excess that no one means
EDGES = string.punctuation + "…–—。、，！？：；«»“”„‘’¿¡"
# a unit of letters, the shortest, in COPIES copies and more, whatever stands between words
UNITS = re.compile(rf"(.{{1,{PHRASE}}}?)\1{{{COPIES - 1},}}", re.DOTALL)
LETTERS = {"wide": 2, "narrow": 5}  # of a word: of Chinese, Japanese and Korean, of alphabets


def find_marks(text: str) -> list[str]:
    return MARK.findall(text)


def drop_marks(text: str) -> str:
    return " ".join(MARK.sub(" ", text).split())


def count_looped(text: str) -> int:
    """Count the words beyond the second copy in runs of COPIES copies of a phrase or more, a copy
    that is cut short included. Phrases have PHRASE words at most; case and punctuation around words
    make no other words.

    Of 18,000 hypotheses of Whisper base on read speech of non-native speakers, 49 have any, and 6.8
    errors more than the best of their list (all: 1.9); 25 have LOOPING, and 11.7 errors more, none
    of them a best one. A compression ratio (zlib) above 2.4, by which Whisper decodes again
    (Radford et al. 2023, section 4.5), finds 13 of the 25 and no other: a text of ten words never
    compresses so well. A second copy is what people say: 656 of 2000 references of telephone speech
    have one, 56 a third, one LOOPING words in excess. Copies inside a word count by
    `count_looped_letters`; a text whose words do not loop is one word where its script has no
    blanks.
    """
    words = text.split()
    looped = count_looped_words(words)
    return looped + sum(
        map(count_looped_letters, words if looped else join_characters(text).split())
    )


def count_looped_letters(word: str) -> int:
    """Return the number of words (of LETTERS) that the letters beyond the second copy of a unit
    inside `word` would make, 0 for fewer than LOOPING: people do write `hahaha`. Case and
    punctuation make no other letters, and digits alone no unit.
    """
    if len(word) < LOOPING * min(LETTERS.values()) or len(word) - len(set(word.lower())) < COPIES:
        return 0
    letters = "".join(c for c in word.lower() if unicodedata.category(c)[0] in "LMN")
    looped = 0
    for run in UNITS.finditer(letters):
        unit = run[1]
        if any(map(str.isalpha, unit)):
            width = "wide" if unicodedata.east_asian_width(unit[0]) == "W" else "narrow"
            looped += (len(run[0]) - 2 * len(unit)) // LETTERS[width]
    return looped if looped >= LOOPING else 0


def count_looped_words(words: Sequence[str]) -> int:
    # with fewer than COPIES - 1 repeats no run can be
    if len(words) < COPIES:
        return 0
    words = [word.strip(EDGES).lower() or word for word in words]
    if len(words) - len(set(words)) < COPIES - 1:
        return 0
    start = looped = 0
    while start < len(words):
        excess, run = longest_run(words, start)
        looped += excess
        start += run
    return looped


def longest_run(words: Sequence[str], start: int) -> tuple[int, int]:
    """Return excess words and length of the longest run from `start`; (0, 1) without one."""
    longest = 0, 1
    rest = len(words) - start
    for period in range(1, min(PHRASE, rest // COPIES) + 1):
        if rest - 2 * period <= longest[0]:
            break
        if words[start] != words[start + period]:
            continue
        end = start + period
        while end < len(words) and words[end] == words[end - period]:
            end += 1
        run = end - start
        if run >= COPIES * period and run - 2 * period > longest[0]:
            longest = run - 2 * period, run
    return longest


def is_looping(text: str) -> bool:
    """Return whether LOOPING words of a text or more are in excess."""
    return count_looped(text) >= LOOPING
