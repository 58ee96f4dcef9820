import subprocess
import sys
from pathlib import Path

import pytest

from lmtools.text.marks import count_looped, drop_marks, find_marks, is_looping


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("[Music]", "[Music]"),
        ("[Music playing] so it goes (all laughing).", "[Music playing];(all laughing)"),
        ("♪ la la ♪♫", "♪;♪♫"),
        ("<|en|><|transcribe|>yes<|endoftext|>", "<|en|>;<|transcribe|>;<|endoftext|>"),
        ("*sighs* <unk> ++NOISE++ </s> !SIL (hm)", "*sighs*;<unk>;++NOISE++;</s>;!SIL;(hm)"),
        ("the red |0-1| fox |2-2,wa=0-0| <s>so fox</s> | 1-2 |", "|0-1|;|2-2,wa=0-0|;<s>;</s>"),
        ("f*ck and sh*t, ami(e)s of 2 * a * b (1999) !silly a<b 1|0-1|", ""),
        ("", ""),
    ],
)
def test_what_stands_for_no_word(text, marks):
    assert ";".join(find_marks(text)) == marks


def test_what_is_left():
    assert drop_marks("[Music playing] so it goes (audience laughing) ♪") == "so it goes"
    assert drop_marks("<|en|>yes<|endoftext|>") == "yes"
    assert drop_marks("[BLANK_AUDIO]") == ""


@pytest.mark.parametrize(
    ("text", "looped"),
    [
        ("", 0),
        ("poor", 0),
        ("it was a poor poor", 0),
        ("it was a poor poor poor", 1),
        ("it was a poor poor poor poor man", 2),
        ("no no no and yes yes yes yes", 1 + 2),
        ("there was no way there was no way there was no way", 4),
        ("there was no way there was no way there was no", 0),  # the third copy is cut short
        ("there was no way there was no way there was no way there was", 4 + 2),
        ("very very very good very very very good very very very good", 4),
        ("a b a b a b b b", 2 + 0),
        ("a a b a a b a", 0),
        ("No, no, no, no. No!", 3),
        ("well . . . . .", 3),
        ("one two one three one four one", 0),
    ],
)
def test_words_beyond_the_second_copy_of_three_and_more(text, looped):
    assert count_looped(text) == looped


@pytest.mark.parametrize(
    ("text", "looped"),
    [
        ("谢谢" * 8, 7),  # 16 letters, a unit of one, two letters a word
        ("ありがとうございました。" * 4, 11),
        ("สวัสดีครับ" * 6, 8),
        ("감사합니다 " * 3 + "감사합니다" * 4, 1 + 5),
        ("감사합니다" * 4, 5),
        ("谢谢。谢谢，谢谢！ 谢谢 谢谢、谢谢谢谢", 6),  # blanks and punctuation as they come
        ("H" + "m" * 30, 5),
        ("HahahaHAHA" * 4, 7),
        ("no-no-" * 8 + "no", 6),
        ("it was " + "na" * 20 + " na na na na", 7 + 2),
        # what people write, and numbers
        *(
            (text, 0)
            for text in ("hahahahaha", "sooooooo", "哈哈哈哈哈哈", "对对对对对", "Mississippi")
        ),
        *(
            (text, 0)
            for text in ("1" + "0" * 60, "10,000,000,000,000,000,000,000", "12" * 20, "." * 40)
        ),
    ],
)
def test_copies_inside_words_and_lines_without_blanks(text, looped):
    assert count_looped(text) == looped
    assert is_looping(text) == (looped >= 4)


def test_copies_count_the_same_wherever_they_stand():
    run = "all the way " * 5
    for text in (run, f"and {run}", f"{run} home", f"and {run} home"):
        assert count_looped(text) == 9
    assert count_looped(f"way {run} all") == 11  # copies of `way all the`


def test_a_loop_is_more_than_anybody_says():
    assert not is_looping("oh no no no no no it is not")
    assert is_looping("oh no no no no no no it is not")


def test_long_texts_take_little_time():
    assert count_looped(" ".join(f"w{i % 100}" for i in range(20_000))) == 20_000 - 2 * 100
    assert count_looped(("a " * 500 + "b ") * 40) == 498 * 40
    assert count_looped("a " * 100_000) == 99_998
    assert count_looped("ab" * 100_000) == (200_000 - 4) // 5
    assert not count_looped("".join(chr(0x4E00 + i * i % 977) for i in range(100_000)))


SCRIPT = Path(__file__).parents[3] / "utils/detokenise.py"


def detokenised(text: bytes, *options):
    """What the script makes of standard input."""
    return subprocess.run([sys.executable, SCRIPT, *options], input=text, capture_output=True)


def test_a_file_line_by_line():
    """Every line stays one, empty ones included, and Unicode's other line separators end none."""
    done = detokenised("a , b\n\nc&apos; est\u2028l &quot; é &quot; .\n".encode(), "fr")
    assert done.stdout.decode() == 'a, b\n\nc\'est l "é".\n'


def test_mistakes_are_one_line():
    for text, language, cause in (
        (b"a\n", "French", b"not a language code"),
        (b"\xff\n", "fr", b"-:1: not UTF-8"),
    ):
        done = detokenised(text, language)
        assert done.returncode == 1 and cause in done.stderr and done.stderr.count(b"\n") == 1
