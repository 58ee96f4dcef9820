"""Our counts and our matched pairs against NIST's sclite and sc_stats (Debian: sctk)."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lmtools.evaluate.corpus import References
from lmtools.evaluate.edits import align
from lmtools.evaluate.significance import segment_errors, slots, z_test
from lmtools.formats.nbest import trn

DEBIAN = Path("/usr/lib/sctk/bin")


def program(name):
    """The path of one of NIST's programs, or None."""
    return shutil.which(name) or shutil.which(name, path=str(DEBIAN))


SCLITE, SC_STATS = program("sclite"), program("sc_stats")
pytestmark = pytest.mark.skipif(
    not (SCLITE and SC_STATS),
    reason="sclite and sc_stats are not installed (Debian: apt install sctk)",
)


def sgml(folder, refs, hyps, title):
    """sclite's alignments as its SGML."""
    trn.write(refs, folder / "ref.trn")
    trn.write(hyps, folder / "hyp.trn")
    files = ["-r", folder / "ref.trn", "trn", "-h", folder / "hyp.trn", "trn", title]
    command = [SCLITE, *files, "-i", "spu_id", "-s", "-o", "sgml", "stdout"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def alignments(text):
    """The steps of sclite's alignments by utterance, in the form that `align` has."""
    found = re.findall(r'<PATH id="\((\S+?)\)"[^>]*>\n(.*?)\n?</PATH>', text, re.DOTALL)
    return {utt: "".join(item[0] for item in path.split(":") if item) for utt, path in found}


def corpus(seed, vocabulary, utterances=60):
    """Random references and two systems with errors of every kind, at ends too."""
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(vocabulary)]

    def noisy(text):
        hyp = [rng.choice(words)] if rng.random() < 0.1 else []
        for word in text.split():
            hyp += rng.choices(
                [[], [rng.choice(words)], [word], [word, rng.choice(words)]], [10, 15, 65, 10]
            )[0]
        return " ".join(hyp)

    refs = {f"s_{i}": " ".join(rng.choices(words, k=rng.randint(0, 14))) for i in range(utterances)}
    return refs, [{utt: noisy(text) for utt, text in refs.items()} for _ in range(2)]


@pytest.mark.parametrize("vocabulary", [3, 8, 50, 400])
def test_counts(tmp_path, vocabulary):
    """sclite minimises 4 S + 3 (D + I): more errors, but only at three substitutions."""
    refs, (hyps, _) = corpus(vocabulary, vocabulary)
    theirs = alignments(sgml(tmp_path, refs, hyps, "ours"))
    assert theirs.keys() == refs.keys()
    total = 0
    for utt, ref in refs.items():
        ours = align(ref.split(), hyps[utt].split()).counts
        found = len(theirs[utt]) - theirs[utt].count("C")
        assert ours.errors <= found, utt
        assert ours.errors == found or ours.substitutions >= 3, utt
        total += found - ours.errors
    assert total <= 2  # of some hundred errors


def test_counts_differ_where_sclite_trades_errors_for_right_words(tmp_path):
    ref, hyp = "w5 w0 w6 w1 w4 w2 w1", "w1 w4 w7 w1 w2 w7 w1"
    (theirs,) = alignments(sgml(tmp_path, {"s_1": ref}, {"s_1": hyp}, "ours")).values()
    assert align(ref.split(), hyp.split()).counts.errors == 5
    assert len(theirs) - theirs.count("C") == 6


@pytest.mark.parametrize("seed", range(4))
def test_matched_pairs_on_the_same_alignments(tmp_path, seed):
    refs, systems = corpus(seed, [3, 8, 50, 400][seed])
    outputs = [sgml(tmp_path, refs, hyps, f"sys{i}") for i, hyps in enumerate(systems)]
    command = [SC_STATS, "-p", "-t", "mapsswe", "-v", "-n", "-"]
    report = subprocess.run(
        command, input="".join(outputs), capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    found = re.search(
        r"# segs: (\d+).*?mean: *(\S+)\).*?std dev: *(\S+)\).*?Z Stat: *(\S+)\)", report
    )
    first, second = map(alignments, outputs)
    ours = z_test(
        np.concatenate([segment_errors(slots(first[utt]), slots(second[utt])) for utt in refs])
    )
    assert ours.segments == int(found[1])
    assert [ours.mean, ours.deviation, ours.z] == pytest.approx(
        [float(found[i]) for i in (2, 3, 4)], abs=6e-4
    )
    from_text = References(refs).compare(*systems)
    assert from_text.z == pytest.approx(ours.z, abs=0.25)  # the alignments differ a little


def test_plain_words_keep_their_meaning(tmp_path):
    """What trn.write lets through, sclite compares literally."""
    words = [
        "it's", "<unk>", "[noise]", "a/b", "/", "-ab", "c-", "%hes", "&x", "#y", "a:b", "(foo",
        "bar)", "É", "ß", "?", "!",
    ]  # fmt: skip
    others = [
        "its", "unk", "noise", "b", "|", "ab", "c", "hes", "x", "y", "a:c", "foo", "bar", "é", "s",
        ".", "1",
    ]  # fmt: skip
    refs = {f"s_{i}": f"begin {word} end" for i, word in enumerate(words)}
    for hyps, expected in ((words, 0), (others, 1)):
        output = sgml(
            tmp_path, refs, {f"s_{i}": f"begin {word} end" for i, word in enumerate(hyps)}, "ours"
        )
        codes = re.findall(r"<PATH[^>]*>\n(.*?)\n</PATH>", output, re.DOTALL)
        assert [len(re.findall(r'(?:^|:)[SDI],"', path)) for path in codes] == [expected] * len(
            words
        )
