"""Sessions of lists: of a field, a file or ids; the order of the utterances in one."""

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import jsonl
from lmtools.formats.lists import find_sessions, join_texts
from lmtools.types import Hypothesis, NBest


def test_sessions_of_a_field_and_of_a_directory(tmp_path):
    lists = [
        NBest(utt, (), extra={"session": name}) for utt, name in zip("abc", "xyx", strict=True)
    ]
    jsonl.write(lists, tmp_path / "l.jsonl")
    assert find_sessions(list(jsonl.read(tmp_path / "l.jsonl"))) == [[0, 2], [1]]
    with pytest.raises(UserError, match="holds neither segments nor utt2spk"):
        find_sessions(lists, str(tmp_path))
    (tmp_path / "utt2spk").write_text("a s\nb s\nc t\n")
    assert find_sessions(lists, str(tmp_path)) == [[0, 1], [2]]
    (tmp_path / "segments").write_text("a r 5 6\nb r 1 2\nc r 3 4\n")
    assert find_sessions(lists, str(tmp_path)) == [[1, 2, 0]]


@pytest.mark.parametrize(
    ("field", "cause"),
    [
        ('"session": 3', "'session' is 3; expected a text"),
        ('"session": "a", "extra": {"session": "b"}', "'session' differs from that in 'extra'"),
    ],
)
def test_what_is_no_session(tmp_path, field, cause):
    path = tmp_path / "l.jsonl"
    path.write_text('{"utt": "u", ' + field + ', "hyps": []}\n')
    with pytest.raises(UserError, match=cause):
        list(jsonl.read(path))


def test_sessions(tmp_path):
    def of(*utts, **extra):
        return [NBest(utt, (), extra=extra) for utt in utts]

    assert find_sessions(of("1-2-0", "1-3-0", "1-2-1", "x")) == [[0, 2], [1], [3]]
    assert find_sessions([*of("a", "b", session="s"), *of("c", session="t")]) == [[0, 1], [2]]
    (tmp_path / "segments").write_text("b rec 0.5 1.0\na rec 2 3.5\nc other 0 1\n")
    assert find_sessions(of("a", "b", "c"), str(tmp_path / "segments")) == [[1, 0], [2]]
    (tmp_path / "utt2spk").write_text("a s\nb t\nc s\n")
    assert find_sessions(of("a", "b", "c"), str(tmp_path / "utt2spk")) == [[0, 2], [1]]
    for lists, path, cause in (
        ([*of("a", session="s"), *of("b")], None, "'b' has no session"),
        (of("d"), str(tmp_path / "utt2spk"), "utt2spk: has no session of 'd'"),
    ):
        with pytest.raises(UserError, match=cause):
            find_sessions(lists, path)


def timed(*starts):
    """Lists of a session with these starts, u0, u1 .., in the order given."""
    return [
        NBest(f"u{place}", (), extra={"session": "s", **({"start": start} if start else {})})
        for place, start in enumerate(starts)
    ]


@pytest.mark.parametrize(
    ("lists", "order"),
    [
        (timed("6.20", "0.00", "10.5", "3.4"), [1, 3, 0, 2]),
        (timed("12", "9.5", "100"), [1, 0, 2]),  # seconds, not text
        (timed("5", "", "3"), [0, 1, 2]),  # one without: the names, which are in order
        ([NBest(utt, ()) for utt in ("tea-b", "tea-a")], [0, 1]),  # no times
    ],
)
def test_times_decide_the_order(lists, order):
    assert find_sessions(lists) == [order]
    texts = {one.utt: one.utt for one in lists}
    (joined,) = join_texts(texts, lists).values()
    assert joined.split() == [lists[place].utt for place in order]


def test_ids_sorted_as_text_go_by_their_numbers(capsys):
    """Kaldi sorts m1-10 before m1-9; an order that is not that of text stays, and is told."""
    for ids, expected in (
        (["m1-10", "m1-11", "m1-8", "m1-9"], ["m1-8", "m1-9", "m1-10", "m1-11"]),
        (["m1-9", "m1-10", "m1-8"], ["m1-9", "m1-10", "m1-8"]),
    ):
        (session,) = find_sessions([NBest(utt, (Hypothesis("a"),)) for utt in ids])
        assert [ids[place] for place in session] == expected
        told = "(first 'm1-9'): taken as they stand in the file" in capsys.readouterr().err
        assert told == (ids != sorted(ids))
