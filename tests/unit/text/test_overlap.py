"""What a text shares with sets, against a search word by word."""

import random

import pytest

from lmtools import cli
from lmtools.text import overlap
from lmtools.text.overlap import RUNS, WHOLE, JudgedSentences, split_words, write_others


def search(sets, lines):
    """Sentences of each set by shared run, whole ones, and the marked lines, by brute force."""
    words = [(n, word) for n, line in enumerate(lines, 1) for word in split_words(line) or [None]]
    text, marked, found = [word for _, word in words], set(), {}
    for name, sentences in sets.items():
        found[name] = {run: set() for run in (*RUNS, WHOLE)}
        for number, sentence in enumerate(map(split_words, sentences)):
            runs = [(n, sentence[i : i + n]) for n in RUNS for i in range(len(sentence) - n + 1)]
            runs += [(WHOLE, sentence)] if len(sentence) >= WHOLE else []
            for kind, run in runs:
                for place in range(len(text)):
                    if text[place : place + len(run)] == run:
                        found[name][kind].add(number)
                        marked.update(n for n, _ in words[place : place + len(run)])
    return found, marked


@pytest.mark.parametrize("block", [9, 1 << 20])
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_all_that_is_shared_is_found(tmp_path, monkeypatch, block, seed):
    """JudgedSentences of three different words; blocks shorter than a sentence, or one."""
    monkeypatch.setattr(overlap, "BLOCK", block)
    draw = random.Random(seed)
    lines = [" ".join(draw.choices("aabbc", k=draw.randint(0, 12))) for _ in range(120)]
    sets = {
        n: [" ".join(draw.choices("aaabbbe", k=draw.randint(0, 11))) for _ in range(40)]
        for n in "xy"
    }
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    found = JudgedSentences(sets).find_in([tmp_path / "text"])
    shared, marked = search(sets, lines)
    assert all(shared["x"].values()) and len(marked) < len(lines)
    offset = 0
    for name, of_set in found.sets.items():
        expected = {kind: {n + offset for n in numbers} for kind, numbers in shared[name].items()}
        assert of_set.runs | {WHOLE: of_set.whole} == expected
        assert of_set.long == sum(len(split_words(text)) >= WHOLE for text in sets[name])
        offset += len(sets[name])
    assert found.lines == {str(tmp_path / "text"): marked}
    write_others([tmp_path / "text"], tmp_path / "out", found)
    kept = [line for number, line in enumerate(lines, 1) if number not in marked]
    assert (tmp_path / "out").read_text().splitlines() == kept


def test_case_punctuation_and_line_ends_hide_nothing(tmp_path):
    """A sentence over two lines; an empty line, as between two books, parts what follows."""
    sentence = "Don't go, said the OLD man to her"
    text = "he rose don’t go said\nthe old man -- to her again\n\n"
    (tmp_path / "text").write_text(f"{text}don't go said the\n\nold man to her\n")
    found = JudgedSentences({"set": [sentence]}).find_in([tmp_path / "text"])
    assert found.sets["set"].runs == {7: {0}, 8: {0}} and found.sets["set"].whole == {0}
    assert found.lines[str(tmp_path / "text")] == {1, 2} and found.read == 4
    assert JudgedSentences({}).find_in([tmp_path / "text"]).marked == 0


def test_letters_count_where_no_blanks_part_words(tmp_path):
    lines = [
        "我们明天早上去海边看日出",
        "我们明天",
        "他的弟弟 已经 卖掉了旧自行车。",
        "今天天气很好",
    ]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    judged = JudgedSentences(
        {"test": ["我们明天早上去海边看日出", "弟弟已经卖掉了旧自行车", "明天"]}
    )
    found = judged.find_in([tmp_path / "text"])
    assert found.sets["test"].whole == {0, 1} and found.sets["test"].long == 2
    assert found.lines == {str(tmp_path / "text"): {1, 3}} and found.unit == "letters"


def test_verb(tmp_path, capsys):
    text, out = tmp_path / "text", tmp_path / "out.txt"
    text.write_text("a b c d e f\na b c d e\nz y x w v u t s\n")
    (tmp_path / "dev.ref").write_text("u1 A b c d e f\nu2 q y x w v u t s\n")
    (tmp_path / "plain").write_text("a b c d e\nu t s r q p\n")
    sets = [str(tmp_path / name) for name in ("dev.ref", "plain")]
    corpus = ["corpus", "--text", str(text), "--ref", *sets]
    assert not cli.main(corpus) and not out.exists()
    table = capsys.readouterr().out
    assert f"| {sets[0]} | 2 | 1 | 0 | 2 | 1 |\n| {sets[1]} | 2 | 0 | 0 | 1 | 0 |" in table
    assert not cli.main([*corpus, "--leave-out-overlap", "--out", str(out)])
    said = capsys.readouterr()
    assert out.read_text() == "a b c d e\n" and "out.txt: 1 lines, 2 left out" in said.out
    assert f"{text}:1: left out" in said.err
    for more in (["--subword", "x"], ["--out", "x"], ["--leave-out-overlap"]):
        assert cli.main([*corpus, *more]) == 1
    out.write_text("\n")
    assert cli.main(["corpus", "--text", str(text), "--ref", str(out)]) == 1
