"""Kaldi's tables: read and written here, and by another implementation."""

import io
import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.context import using
from lmtools.base.errors import UserError
from lmtools.formats import kaldi_tables
from lmtools.formats.kaldi_tables import Writer, read_block, read_entries, read_values

keys = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
int32 = st.integers(-(2**31), 2**31 - 1)


def spell(numbers) -> str:
    """Integers as an entry holds them."""
    return " ".join(map(str, numbers))


def got(path, kind):
    return [(key, value) for key, value, _ in read_values(path, kind)]


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(keys, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    st.dictionaries(keys, st.lists(int32), max_size=4),
    st.sampled_from(["ark:{}/f", "ark,t:{}/f", "{}/f.gz", "ark:{}/f.xz", "{}/f"]),
)
def test_numbers_come_back(tmp_path_factory, floats, lists, spec):
    path = spec.format(tmp_path_factory.mktemp("t"))
    for table, kind, spelled in ((floats, "float", repr), (lists, "ints", spell)):
        with Writer(path) as out:
            for key, value in table.items():
                out.write(key, spelled(value))
        assert got(path, kind) == list(table.items())


def test_script_file_points_into_its_archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Writer("ark:a.ark") as out:
        for key, value in (("é", [1, 2]), ("b", []), ("c", [7])):
            out.write(key, spell(value))
    (tmp_path / "a.scp").write_text("é a.ark:3\nb a.ark:9\nc a.ark:12\n")
    expected = [("é", [1, 2]), ("b", []), ("c", [7])]
    assert all(got(name, "ints") == expected for name in ("scp:a.scp", "a.scp", "ark:a.ark"))
    turned = [*reversed((tmp_path / "a.scp").read_text().splitlines()), "d echo 8 9 |"]
    (tmp_path / "b.scp").write_text("\n".join(turned))
    with using(allow_commands=True):
        assert got("scp,s,cs,p:b.scp", "ints") == [*reversed(expected), ("d", [8, 9])]
    assert got("scp:head -n 1 b.scp |", "ints") == [("c", [7])]


def test_text_lines_and_blocks(tmp_path):
    path = tmp_path / "t"
    path.write_bytes("\ufeffa b  c\r\n\nempty\ntab\tx\nspace \nlast y".encode())
    rows = [("a", "b c", 1), ("empty", "", 3), ("tab", "x", 4), ("space", "", 5), ("last", "y", 6)]
    expected = [(key, value, f"{path}:{line}") for key, value, line in rows]
    assert list(read_values(path, "tokens")) == expected
    path.write_bytes(b"a \n0\t1\n1\n\nb\n\nc \n0 1")
    found = [(entry.key, list(read_block(entry))) for entry in read_entries(f"ark,t:{path}")]
    assert found == [
        ("a", [(f"{path}:2", "0\t1"), (f"{path}:3", "1")]),
        ("b", []),
        ("c", [(f"{path}:8", "0 1")]),
    ]


def test_binary_lattices_are_told_from_text_by_openfsts_number(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"a " + kaldi_tables.OPENFST + b"xyzb \0Bxyzc xyz")
    rows = [
        (entry.binary, entry.where, entry.stream.read(7 if entry.key == "a" else 3)[-3:])
        for entry in read_entries(path)
    ]
    assert rows == [
        (False, f"{path}: key 'a' at byte 2", b"xyz"),
        (True, f"{path}: key 'b' at byte 11", b"xyz"),
        (False, f"{path}:1", b"xyz"),
    ]


def test_long_values_and_keys_at_block_borders(tmp_path):
    lists = {f"utt{i}": list(range(i * 397)) for i in range(20)}
    for spec in ("ark:{}/a", "ark,t:{}/a.gz"):
        path = spec.format(tmp_path)
        with Writer(path) as out:
            for key, value in lists.items():
                out.write(key, spell(value))
        assert dict(got(path, "ints")) == lists


def test_pipes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a 1\nb 2\n")))
    assert got("ark:-", "float") == [("a", 1.0), ("b", 2.0)]
    with Writer("ark,t:-") as out:
        out.write("a", "x y")
    assert capsys.readouterr().out == "a x y\n"
    with Writer(f"ark,t:| gzip -c > {tmp_path}/z.gz") as out:
        out.write("a", "3.5")
    assert got(f"ark,t:gunzip -c {tmp_path}/z.gz |", "float") == [("a", 3.5)]


def test_an_entry_is_there_before_the_pipe_ends():
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb", buffering=0) as pipe, os.fdopen(read_end, "rb") as reading:
        stream = kaldi_tables.Stream
        pipe.write(b"utt \nutt2 ")  # an empty value, and a key whose value is to come
        lines = stream(reading, "-")
        first = kaldi_tables.read_entry(lines.key(), lines)
        assert (first.key, kaldi_tables.read_line(first)) == ("utt", "")
        assert lines.key() == "utt2"


def test_a_reader_that_stops_early_leaves_no_process(tmp_path):
    found = read_entries(f"ark:echo $$ > {tmp_path}/pid; yes 'a b' |")
    assert kaldi_tables.read_tokens(next(found)) == "b"
    found.close()
    assert subprocess.run(
        ["kill", "-0", (tmp_path / "pid").read_text().strip()], capture_output=True
    ).returncode


@pytest.mark.parametrize(
    ("content", "kind", "cause"),
    [
        (b"a 1\n b 2\n", "float", ":2: no key at the start"),
        (b"a 1\nb\n", "float", ":2: the value of 'b' is ''"),
        (b"a 1\nb nan\n", "float", ":2: the value of 'b' is 'nan'"),
        (b"a 1\nb 1.5\n", "ints", ":2: '1.5' is not an integer"),
        (b"a 1\n\xff 1\n", "ints", ":2: not UTF-8"),
        (b"a 1\nb \xff\n", "tokens", ":2: not UTF-8"),
        ("a 1\nb\u3000c 1\n".encode(), "tokens", ":2: utterance id"),
        (b"a \0B\4\0\0", "float", ": byte 7: ends inside an entry"),
        (b"a \0B", "float", ": byte 4: ends inside an entry"),
        (b"a \0B\7\0\0\0\0", "float", ": key 'a' at byte 2: not a binary number"),
        (b"a \0B\4\0\0\x80\x7f", "float", ": key 'a' at byte 2: the value of 'a' is 'inf'"),
        (b"a \0B\4\2\0\0\0\4\1\0\0\0\5\1\0\0\0", "ints", ": key 'a' at byte 2: not a binary list"),
        (b"a \0B\4\xff\xff\xff\xff", "ints", "claims -1 integers"),
        (b"a \0B\4\xff\xff\xff\x7f", "ints", "ends inside an entry"),
        (b"a \0Bxyz", "tokens", "binary data where text is expected"),
        (b"x" * 70000, "tokens", ":1: no key at the start"),
    ],
)
def test_refuses(tmp_path, content, kind, cause):
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        got(f"ark:{path}", kind)
    message = str(caught.value)
    assert message.startswith(str(path)) and cause in message
    assert "; " in message and "\n" not in message


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ("ark:{}/none", "cannot read"),
        ("ark:{}", "cannot read"),
        ("scp:{}/s1", "s1:1: no file after key 'a'"),
        ("scp:{}/s2", "none: cannot read"),
        ("ark:exit 3 |", "exit 3: the command failed with status 3"),
        ("ark:echo a 1; exit 3 |", "failed with status 3"),
        ("ark:{}/bad.gz", "bad.gz: damaged archive"),
        ("ark:a\0b", "no name of a file"),
        ("ark:a\0b |", "cannot run it"),
    ],
)
def test_refuses_what_it_cannot_open(tmp_path, spec, cause):
    (tmp_path / "s1").write_text("a\n")
    (tmp_path / "s2").write_text(f"a {tmp_path}/none:7\n")
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match=cause):
        got(spec.format(tmp_path), "tokens")


@pytest.mark.parametrize("spec", ["scp:f", "ark,scp:f", "ark,scp:-,f", "ark,scp:f.gz,f"])
def test_refuses_to_write(tmp_path, spec, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="tables are written as archives"):
        Writer(spec)


def test_a_failed_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "t"
    path.write_text("old")
    for key in ("a b", ""):
        with pytest.raises(UserError), Writer(path) as out:
            out.write(key, "x")
    with pytest.raises(UserError, match="status 3"), Writer("ark:| exit 3"):
        pass
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["t"]


def test_another_implementation_reads_and_writes_the_same(tmp_path):
    native = pytest.importorskip("kaldi_native_io")
    floats = {"é-1": -3.25, "b-2": 1e30}
    lists = {"é-1": [1, -2, 2**31 - 1], "b-2": []}
    words = {"é-1": ["blue", "Fink·"], "b-2": ["x"]}

    kinds = (
        (floats, "float", "Float", repr),
        (lists, "ints", "Int32Vector", spell),
        (words, "tokens", "TokenVector", " ".join),
    )
    for mode, (table, kind, name, spelled) in itertools.product(("ark", "ark,t"), kinds):
        writer, reader = (
            getattr(native, of) for of in (f"{name}Writer", f"Sequential{name}Reader")
        )
        expected = [
            (key, pytest.approx(value, rel=1e-6) if kind == "float" else value)
            for key, value in table.items()
        ]
        with writer(f"{mode}:{tmp_path}/theirs") as theirs:
            for key, value in table.items():
                theirs.write(key, value)
        found = got(f"{mode}:{tmp_path}/theirs", kind)
        assert [
            (key, value.split() if kind == "tokens" else value) for key, value in found
        ] == expected
        with Writer(f"{mode}:{tmp_path}/ours") as out:
            for key, value in table.items():
                out.write(key, spelled(value))
        with reader(f"ark:{tmp_path}/ours") as again:
            assert list(again) == expected


def test_a_value_may_have_so_many_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("LMTOOLS_MAX_LINE", "1K")
    path = tmp_path / "t"
    path.write_bytes(b"\n" * 300_000 + b"a " + b"1 " * 511 + b"\nb 2\n")
    assert [key for key, _, _ in read_values(f"ark:{path}", "tokens")] == ["a", "b"]
    path.write_bytes(b"a 1\nb " + b"x" * 1025 + b"\n")
    with pytest.raises(UserError, match=r"t:2: a line of more than 1024 bytes; .*--max-line"):
        list(read_values(f"ark:{path}", "tokens"))
    path.write_bytes(b"a \0B\x04\x00\x01\x00\x00" + b"\x04\0\0\0\0" * 256)
    cause = r"t: byte 9: an entry of more than 1024 bytes; .*--max-line"
    with pytest.raises(UserError, match=cause):
        list(read_values(f"ark:{path}", "ints"))
