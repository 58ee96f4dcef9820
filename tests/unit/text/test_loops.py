import pytest

from lmtools.text.loops import count_looped, is_looping


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
