import pytest

from lmtools.text.marks import count_looped, is_looping


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
