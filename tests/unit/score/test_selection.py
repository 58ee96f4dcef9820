"""Lines chosen by cross-entropy difference."""

import math
from collections import Counter

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.ngram import NgramModel
from lmtools.score import selection
from lmtools.score.selection import Estimation, draw_lines, select_lines


def measure(texts):
    """The length of each: short lines are best."""
    return np.array([float(len(text)) for text in texts])


def test_the_best_lines_in_their_order():
    made = select_lines(["cccc", "a", "", "bb", " a ", "ddd", "b"], measure, 3)
    assert made.lines == ["a", "bb", "b"] and made.differences == [1, 2, 1]
    assert (made.read, made.repeated) == (6, 1)


def test_of_equal_ones_the_first():
    assert select_lines(["dd", "cc", "bb", "aa"], measure, 2).lines == ["dd", "cc"]


def test_a_copy_of_a_line_that_left_does_not_come_back():
    made = select_lines(["ccc", "bb", "ccc", "a", "ccc", "bb"], measure, 2)
    assert made.lines == ["bb", "a"] and made.repeated == 2


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("keep", [1, 10, 500])
def test_blocks_change_nothing_and_no_more_than_keep_is_held(monkeypatch, block, keep):
    draw = np.random.default_rng(3)
    lines = ["x" * n + str(n % 7) for n in draw.integers(1, 60, 400)]
    monkeypatch.setattr(selection, "BLOCK", block)
    sizes = []
    replace, push = selection.heapq.heapreplace, selection.heapq.heappush

    def watch(change):
        def changed(best, entry):
            out = change(best, entry)
            sizes.append(len(best))
            return out

        return changed

    monkeypatch.setattr(selection.heapq, "heapreplace", watch(replace))
    monkeypatch.setattr(selection.heapq, "heappush", watch(push))
    made = select_lines(iter(lines), measure, keep)
    distinct = list(dict.fromkeys(lines))
    best = sorted(distinct, key=len)[:keep]
    assert made.lines == [line for line in distinct if line in set(best)]
    assert max(sizes) == min(keep, len(distinct))


def test_drawn_lines():
    assert draw_lines("abc", 5, 1) == ["a", "b", "c"]
    drawn = [tuple(draw_lines("abcdef", 2, seed)) for seed in range(3000)]
    shares = Counter(letter for pair in drawn for letter in pair)
    assert all(abs(shares[letter] / 3000 - 1 / 3) < 0.04 for letter in "abcdef")
    assert draw_lines("abcdef", 2, 1) == draw_lines("abcdef", 2, 1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Text of a domain, and a pool of another in which lines of the domain are hidden."""
    place, draw = tmp_path_factory.mktemp("select"), np.random.default_rng(5)

    def sentences(topic, count):
        words = [*(f"{topic}{i}" for i in range(40)), *"abcde"]
        shares = 1 / np.arange(1, len(words) + 1)
        draws = draw.choice(words, (count, 9), p=shares / shares.sum())
        return [" ".join(row[: draw.integers(4, 10)]) for row in draws]

    domain, hidden = sentences("food", 300), sentences("Food", 40)
    other = sentences("sea", 3000)
    (place / "domain.txt").write_text("\n".join(domain))
    pool = [*other[:900], *hidden[:20], "", *other[900:], *hidden[20:], *hidden[:5]]
    (place / "pool.txt").write_text("\n".join(pool))
    return place, list(dict.fromkeys(hidden)), len(dict.fromkeys([*hidden, *other]))


def read_pool(place):
    """The different lines of the pool, in order."""
    return list(dict.fromkeys(filter(None, (place / "pool.txt").read_text().splitlines())))


def select(*options):
    return main(["select", *map(str, options)])


def test_hidden_lines_are_found(texts, tmp_path, capsys):
    place, hidden, _ = texts
    out, numbers = tmp_path / "out.txt", tmp_path / "numbers"
    given = ("--in-domain", place / "domain.txt", "--pool", place / "pool.txt", "--case", "lower")
    rest = ("--keep", len(hidden), "--out", out, "--differences", numbers)
    assert select(*given, *rest) == 0
    found = dict(zip(out.read_text().splitlines(), map(float, numbers.open()), strict=True))
    assert len(found) == len(hidden)
    # all but the few that the sample of the pool happens to have, so that they seem general
    best = sorted(found, key=found.get)[:34]
    assert set(best) < set(hidden) and list(found) == [x for x in read_pool(place) if x in found]
    told = capsys.readouterr().err
    assert f"{len(hidden)} of 3,045 lines, 5 copies left out" in told


def test_what_a_kill_leaves_is_beside_the_output(texts, tmp_path, monkeypatch):
    """So that the next run sweeps it away."""
    places = []

    def measure(self, domain, pool, place, options):
        places.append(place)
        raise UserError("x: stop; here")

    monkeypatch.setattr(Estimation, "measure", measure)
    given = ("--in-domain", texts[0] / "domain.txt", "--pool", texts[0] / "pool.txt", "--keep", 2)
    for out in (tmp_path / "out.txt", "-", "/dev/null"):
        assert select(*given, "--out", out) == 1
    assert [place.parent == tmp_path for place in places] == [True, False, False]
    assert not any(tmp_path.iterdir())


def test_lines_that_the_normaliser_empties_are_not_chosen(texts, tmp_path, capsys):
    place, _, _ = texts
    (tmp_path / "pool").write_text("?!\nsea1 sea2\n-- !!\nfood1 food2\n" * 2)
    given = ("--in-domain", place / "domain.txt", "--pool", tmp_path / "pool", "--keep", 5)
    assert select(*given, "--normaliser", "librispeech", "--out", tmp_path / "out") == 0
    assert (tmp_path / "out").read_text().splitlines() == ["sea1 sea2", "food1 food2"]


def test_differences_are_those_of_the_definition(texts, tmp_path, capsys):
    place, _, distinct = texts
    lms = []
    for name, text in (("domain", "domain.txt"), ("general", "pool.txt")):
        lms.append(tmp_path / name)
        made = ("--text", place / text, "--order", 2, "--kenlm", "none", "--out", lms[-1])
        assert main(["ngram", *map(str, made)]) == 0
    numbers = tmp_path / "numbers"
    given = ("--lm", lms[0], "--general", lms[1], "--pool", place / "pool.txt", "--keep", 4000)
    assert select(*given, "--out", "-", "--differences", numbers) == 0
    told = capsys.readouterr()
    lines = [line for line in told.out.splitlines() if "gram model by" not in line]
    assert len(lines) == distinct and "fewer different lines than --keep" in told.err
    domain, general = map(NgramModel.load, lms)
    for line, number in zip(lines, numbers.read_text().splitlines(), strict=True):
        entropies = [-model.conditional(line)[0].mean() for model in (domain, general)]
        assert math.isclose(float(number), entropies[0] - entropies[1], abs_tol=1e-5)


@pytest.mark.parametrize(
    "options, cause",
    [
        (("--in-domain", "a", "--lm", "b"), "give --in-domain TEXT, or"),
        (("--lm", "a"), "give --in-domain TEXT, or"),
        ((), "give --in-domain TEXT, or"),
        (("--in-domain", "a", "--keep", "0"), "--keep"),
    ],
)
def test_wrong_usage(options, cause, capsys):
    with pytest.raises(SystemExit) as end:
        select("--pool", "p", "--keep", 5, "--out", "o", *options)
    assert end.value.code == 2 and cause in capsys.readouterr().err


def test_nothing_to_choose_from(texts, tmp_path, capsys):
    place, _, _ = texts
    (tmp_path / "empty").write_text("\n\n")
    given = ("--in-domain", place / "domain.txt", "--keep", 5, "--out", tmp_path / "out")
    assert select(*given, "--pool", tmp_path / "empty") == 1
    assert select(*given, "--pool", tmp_path / "absent") == 1
    assert select(*given, "--pool", "-") == 1
    told = capsys.readouterr().err.splitlines()
    assert "no sentence in the text" in told[0] and "is read twice" in told[2]
    assert not (tmp_path / "out").exists()


def test_letters_are_modelled_where_no_blanks_part_words(tmp_path, capsys, monkeypatch):
    """Estimation, selection and mixture, of one text with blanks too; a list is scored by them."""
    monkeypatch.chdir(tmp_path)
    domain = [a + b for a in ("医生", "护士", "病人") for b in ("打针了", "吃药了", "量体温")]
    other = [a + b for a in ("船长", "水手", "渔民") for b in ("下海了", "钓鱼了", "看日出")]
    pool = [line.replace("了", "过") for pair in zip(domain, other, strict=True) for line in pair]
    for name, lines in (("domain", domain), ("other", other), ("pool", pool)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        assert main(["ngram", "--text", name, "--order", "2", "--out", f"{name}-lm"]) == 0
        assert f"{name}: Chinese without blanks between words" in capsys.readouterr().err
    assert (
        main(
            ["select", "--in-domain", "domain", "--pool", "pool", "--keep", "9", "--out", "chosen"]
        )
        == 0
    )
    chosen = (tmp_path / "chosen").read_text().split()
    assert len(chosen) == 9 and sum(line in pool[::2] for line in chosen) >= 8
    assert (
        main(["ngram", "mix", "domain-lm", "other-lm", "--text", "domain", "--out", "mixed"]) == 0
    )
    weights = [float(line.split()[0]) for line in capsys.readouterr().out.splitlines()[-3:-1]]
    assert weights[0] > 0.8
    known = NgramModel.load("mixed").score(["医生打针了", "船长", "猫"])
    assert known[1].tolist() == [6, 3, 2] and known[2].tolist() == [0, 0, 1]
