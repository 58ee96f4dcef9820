"""Phrases in words, against searches that try everything."""

import itertools
import random

import pytest

from lmtools.phrases.glossary import make_glossary
from lmtools.phrases.matching import PhraseAutomaton, spell, split_text


def find_slowly(forms, words):
    """Every occurrence, by comparing each form at each place."""
    best = {}
    for form, value, written in forms:
        if form and value > best.get(form, (-1,))[0]:
            best[form] = value, written
    return [
        (start, start + len(form), written, value)
        for form, (value, written) in best.items()
        for start in range(len(words) - len(form) + 1)
        if tuple(words[start : start + len(form)]) == form
    ]


def best_slowly(found):
    """The greatest value of occurrences that do not overlap, and the fewest that have it."""
    ends = [(0.0, 0)]
    for size in range(1, len(found) + 1):
        for some in itertools.combinations(sorted(found), size):
            if all(left[1] <= right[0] for left, right in itertools.pairwise(some)):
                ends.append((sum(row[3] for row in some), -size))
    return max(ends)


def draw(rng, longest=4):
    letters = "abc"[: rng.randint(1, 3)]
    return tuple(rng.choice(letters) for _ in range(rng.randint(1, longest)))


@pytest.mark.parametrize("seed", range(200))
def test_brute_force(seed):
    rng = random.Random(seed)
    forms = [(draw(rng), rng.choice([0.5, 1, 2, 2.25]), str(i)) for i in range(rng.randint(0, 6))]
    words = draw(rng, longest=9)
    automaton = PhraseAutomaton(forms)
    slow = find_slowly(forms, words)
    assert sorted(automaton.find_all(words)) == sorted(slow)
    if len(slow) > 12:
        return
    chosen = automaton.choose(words)
    assert all(left.end <= right.start for left, right in itertools.pairwise(chosen))
    assert set(chosen) <= set(slow)
    best = best_slowly(slow)
    assert (sum(row.value for row in chosen), -len(chosen)) == best
    assert automaton.value(words) == best[0]


def test_contained():
    forms = [(("new", "york"), 2, "New York"), (("new", "york", "times"), 3, "Times")]
    automaton = PhraseAutomaton([*forms, (("times",), 1, "times")])
    assert [row.written for row in automaton.choose(["the", "new", "york", "times"])] == ["Times"]
    assert automaton.value(["new", "york"]) == 2
    assert automaton.value(["new", "new", "york", "times", "york"]) == 3
    assert PhraseAutomaton([]).value(["a"]) == 0
    assert PhraseAutomaton([((), 1, "")]).find_all(["a"]) == []


def test_linear():
    # as many steps for a text, whatever the number of phrases
    def steps(phrases):
        automaton = PhraseAutomaton([((f"w{i}", f"v{i}"), 2, "") for i in range(phrases)])
        count, step = 0, automaton.step

        def counted(node, word):
            nonlocal count
            count += 1
            return step(node, word)

        automaton.step = counted
        automaton.find_all(["w1", "v1", "x"] * 50)
        return count, len(automaton.next)

    assert steps(10)[0] == steps(10_000)[0]
    assert steps(10_000)[1] == 20_001


@pytest.mark.parametrize(
    ("phrase", "text", "spelled"),
    [
        ("海滨公园", "我们去海滨公园玩。", "我们去海滨公园玩。"),
        (
            "Kubernetes | 库伯",
            "我们用库伯写，库 伯很好 OK",
            "我们用Kubernetes写，Kubernetes很好 OK",
        ),
        ("カメラ | かめら", "新しいかめらを買った", "新しいカメラを買った"),
        ("กิน", "เขากินข้าว", "เขากินข้าว"),
        ("ก", "เขากินข้าว", None),  # a letter without the vowel above it
        ("ABC商事", "ＡＢＣ商事は", "ABC商事は"),
        ("Işık", "BÜYÜK IŞIK YANDI", "BÜYÜK Işık YANDI"),
        ("sık", "sik", None),  # another vowel
        ("İstanbul", "in ISTANBUL now", "in İstanbul now"),
        ("Straße", "DIE STRASSE WAR", "DIE Straße WAR"),
        ("οδός", "Η ΟΔΟΣ ΕΙΝΑΙ", "Η οδός ΕΙΝΑΙ"),
        ("má", "ma", None),
        ("mǎ", "má", None),
    ],
)
def test_scripts_and_languages(phrase, text, spelled):
    automaton = make_glossary([phrase]).of("u")
    assert bool(automaton.value(split_text(text))) == (spelled is not None)
    assert spell(text, automaton) == (spelled or text)
