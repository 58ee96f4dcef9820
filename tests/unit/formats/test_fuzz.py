"""Whatever a reader gets, it returns or raises UserError with one line that names the path."""

import re
import tempfile
from pathlib import Path

import pytest
from fuzz import PAIRS, laid, targets, turns
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS, detect
from lmtools.formats.lattices import LATTICES

TARGETS = targets()
PIECES = [
    *('{"utt":', '"hyps":', "[", "]", "{", "}", '"', "\n", " ", "\t", "\u2028", "\ufeff", "\x00"),
    *("a#1", "(a)", "|||", "F0=", "1e400"),
]
content = st.binary(max_size=60) | st.lists(
    st.sampled_from(PIECES) | st.text(max_size=3), max_size=30
).map(lambda parts: "".join(parts).encode("utf-8", "replace"))


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files(name, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)
    assert not list(turns(TARGETS[name], seed=1, numbers=range(100)))


@settings(max_examples=100, deadline=None)
@given(content, st.sampled_from(["f", "f.gz", "f.xz", "f.bz2"]))
def test_any_content_is_recognised_or_refused(tmp_path_factory, data, file):
    path = tmp_path_factory.mktemp("fuzz") / file
    path.write_bytes(data)
    try:
        detect(path)
    except UserError as error:
        assert "\n" not in str(error) and str(path) in str(error)


@pytest.mark.parametrize("name", TARGETS)
def test_a_missing_path_is_the_users_mistake_and_an_empty_directory_holds_nothing(tmp_path, name):
    with pytest.raises(UserError, match=str(tmp_path / "none")):
        TARGETS[name].read(tmp_path / "none", name)
    found = outcome(TARGETS[name].read, tmp_path, name)
    assert found == [] or str(tmp_path) in found


@pytest.mark.parametrize("name", TARGETS)
def test_undamaged_files_are_read(name, tmp_path):
    """Else the damage would be done to what is refused anyway."""
    assert TARGETS[name].seeds
    for number, files in enumerate(TARGETS[name].seeds):
        home = tmp_path / str(number)
        home.mkdir()
        path = laid(files, home)
        outcomes = [outcome(TARGETS[name].read, path, spec) for spec in TARGETS[name].specs]
        assert any(isinstance(found, list) for found in outcomes), outcomes


@pytest.mark.parametrize("name", TARGETS)
def test_half_a_surrogate_pair_in_any_key_or_value_of_json(name, tmp_path):
    """Which json.loads takes and UTF-8 cannot hold."""
    target = TARGETS[name]
    for files in target.seeds:
        for file, content in files.items():
            for quote in re.finditer(rb'"(?=\w)', content if b'{"' in content else b""):
                half = content[: quote.end()] + rb"\ud83d" + content[quote.end() :]
                home = Path(tempfile.mkdtemp(dir=tmp_path))
                for spec in target.specs:
                    found = outcome(target.read, laid({**files, file: half}, home), spec)
                    assert isinstance(found, list) or "\n" not in found


def outcome(function, *args):
    """What `function` returned, or the UserError's message."""
    try:
        return function(*args)
    except UserError as error:
        return str(error)


def test_every_format_is_a_target():
    assert FORMATS.keys() | LATTICES.keys() | PAIRS.keys() <= TARGETS.keys()
