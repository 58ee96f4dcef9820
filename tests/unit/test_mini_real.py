"""The split of mini-real: what is chosen on train and dev has neither speaker nor sentence of test;
the files are those of SHA256SUMS.
"""

import hashlib
from pathlib import Path

import pytest

from lmtools.formats import jsonl

CORPUS = Path(__file__).parents[2] / "egs/librispeech/mini-real"


def test_files_are_those_of_the_sums():
    lines = (CORPUS / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    found = {str(path.relative_to(CORPUS)): path for path in CORPUS.rglob("*.xz")}
    assert sums == {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()
    }


@pytest.mark.parametrize("part", ["train", "dev"])
def test_choices_have_nothing_of_the_non_native_test(part):
    chosen, test = (
        list(jsonl.read(CORPUS / f"ocean/{name}.nbest.jsonl.xz")) for name in (part, "test")
    )
    for what in (lambda one: one.utt.split("-")[0], lambda one: one.ref):
        assert not {what(one) for one in chosen} & {what(one) for one in test}
