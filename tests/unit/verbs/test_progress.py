"""The long verbs say how far they are, on standard error alone."""

import json
import re
from shlex import split

import pytest
import yaml
from needs import needs
from toys import settings
from translators import random_translator

from lmtools.base import log
from lmtools.base.config import as_tree
from lmtools.cli import main

VERBS = {
    "corpus": ("--text {tiny}/train.txt --subword {tiny}/sw --out o.bin", "corpus o.bin", "B"),
    "ngram": ("--text {tiny}/train.txt --order 2 --kenlm none --out o", "write 2-grams", "n-gram"),
    "score": ("--nbest l.jsonl --lm {tta} --cache none --rows 8 --out o", "score {tta}", "text"),
    "translate": ("--source lines --lm {translator} --beam 2 --out o", "translate by", "sentence"),
    "train": (
        "--conf c.yaml --train {tiny}/train.bin --valid {tiny}/valid.bin --out new"
        " --device cpu log_every=1000",
        "new", "step",
    ),
}  # fmt: skip


@pytest.fixture
def run(tiny, trained, tmp_path, monkeypatch, capsys):
    """A function that runs a verb of VERBS, a line after each piece of work; what it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(log, "EVERY", 0)
    lines = (tiny / "valid.txt").read_text().splitlines()
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(as_tree(settings("causal"))))
    with open("l.jsonl", "w") as out:
        for n, line in enumerate(lines):
            print(json.dumps({"utt": f"u{n}", "hyps": [{"text": line}]}), file=out)
    places = {"tiny": tiny, "tta": trained["tta"], "translator": random_translator(tmp_path)}

    def run(verb, *more):
        words, label, unit = VERBS[verb]
        assert main([verb, *split(words.format(**places)), *more]) == 0
        written = capsys.readouterr()
        return written.out, written.err.splitlines(), label.format(**places), unit

    return run


@pytest.mark.parametrize(
    "verb", [pytest.param(v, marks=needs(v)) if v == "translate" else v for v in VERBS]
)
def test_lines_of_progress(run, verb):
    out, err, label, unit = run(verb)
    unit = "MB" if unit == "B" else f"{unit}s"
    pattern = rf"{re.escape(label)}.*: [\d.,]+ of [\d.,]+ \(\d+%\) {unit}, [\d.,]+ {unit}/s"
    assert any(re.match(pattern, line) for line in err), err
    assert "/s" not in out
