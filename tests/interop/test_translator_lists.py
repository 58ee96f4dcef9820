"""The programs of docs/translation.md, run with small translators, and `rescue` on their lists."""

import re
from pathlib import Path

import numpy as np
import pytest
from toys import sentences
from translators import random_marian

import lmtools
from lmtools.cli import main

PAGE = (Path(__file__).parents[2] / "docs/translation.md").read_text()
PROGRAMS = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NAMES = ("ctranslate2", "transformers", "opennmt")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("lists")
    random_marian(home / "opus-mt-de-en")
    for seed, part in enumerate(("dev", "test")):
        for side in ("de", "en"):
            lines = sentences(24, seed + 5 * (side == "de"), longest=8)
            (home / f"{part}.{side}").write_text("".join(f"{line}\n" for line in lines))
        rows = [(text, -i / 7) for i, text in enumerate(sentences(240, seed + 20, longest=8))]
        (home / f"{part}.pred").write_text("".join(f"{t}\t{s:.4f}\n" for t, s in rows))
    (home / "train.txt").write_text("".join(f"{line}\n" for line in sentences(200, 9)))
    return home


@pytest.mark.parametrize("name", NAMES)
def test_lists_of_translators_are_rescued(place, monkeypatch, name):
    monkeypatch.chdir(place)
    if name == "ctranslate2":
        convert = pytest.importorskip("ctranslate2").converters.TransformersConverter
        convert("opus-mt-de-en").convert("opus.ct2", force=True)
    if name != "opennmt":
        pytest.importorskip("transformers")
    (program,) = [text for text in PROGRAMS if ("pred.txt" in text) == (name == "opennmt")
                  and ("ctranslate2" in text) == (name == "ctranslate2")]  # fmt: skip
    program = program.replace("beam_size=10,", "beam_size=10, max_decoding_length=20,")
    program = program.replace("num_beams=10,", "num_beams=10, max_new_tokens=20,")
    for part in ("dev", "test"):
        program_of_part = program.replace("test.", f"{part}.").replace("pred.txt", f"{part}.pred")
        exec(program_of_part, {})
        # references that such a translator could have meant: a hypothesis of each list
        refs = [
            n.hyps[i % 3].text.strip() or "the" for i, n in enumerate(lmtools.read(f"{part}.jsonl"))
        ]
        Path(f"{part}.en").write_text("".join(f"{ref}\n" for ref in refs))
        exec(program_of_part, {})
        lists = lmtools.read(f"{part}.jsonl")
        assert [n.ref for n in lists] == Path(f"{part}.en").read_text().splitlines()
        assert len(lists) == 24 and all(len(nbest.hyps) == 10 for nbest in lists)
        if name != "transformers":
            scores = [[hyp.scores["am"] for hyp in nbest.hyps] for nbest in lists]
            assert (np.diff(scores) <= 0).all()
    if name == "ctranslate2":
        texts = [[hyp.text for hyp in nbest.hyps] for nbest in lists]
        assert not any("▁" in text or "</s>" in text for row in texts for text in row)
    call = "rescue --dev dev.jsonl --test test.jsonl --text train.txt --metric bleu --cache none"
    assert main([*call.split(), "--out", f"out-{name}"]) == 0


MARIAN = """0 ||| blue finch ||| 0-0 1-1 ||| F0= -2.1 F1= -0.4 ||| -0.7
0 ||| blue fins ||| 0-0 1-1 ||| F0= -2.9 F1= -0.5 ||| -0.9
1 ||| sings ||| 0.91,0.09 ||| WordScores= -0.2 -0.1 ||| F0= -0.3 F1= -0.2 ||| -0.1
"""


def test_marian_with_alignments(tmp_path):
    (tmp_path / "n").write_text(MARIAN)
    first, second = lmtools.read(tmp_path / "n")
    assert [hyp.text for hyp in first.hyps] == ["blue finch", "blue fins"]
    assert first.hyps[0].scores == {"F0": -2.1, "F1": -0.4, "am": -0.7}
    assert (first.hyps[0].extra["alignment"], second.hyps[0].text) == ("0-0 1-1", "sings")
