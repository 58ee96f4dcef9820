"""Alternations, optional words, global maps, and a ctm against an stm: equal to NIST's sclite,
csrfilt.sh and hubscr.pl (Debian: sctk), step by step.
"""

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from lmtools.evaluate.corpus import References
from lmtools.evaluate.metrics import Rules
from lmtools.evaluate.show import count_words
from lmtools.formats.nbest.stm import read_segments
from lmtools.nist.alignment import align_texts
from lmtools.nist.glm import GlobalMap
from lmtools.nist.segments import cut_words

DEBIAN = Path("/usr/lib/sctk/bin")
NIST = Path(__file__).with_name("nist")
PATH = os.pathsep.join([str(DEBIAN), os.environ["PATH"]])
pytestmark = pytest.mark.skipif(
    not (DEBIAN / "hubscr.pl").exists(),
    reason="NIST's sctk is not in /usr/lib/sctk (Debian: apt install sctk)",
)
STEPS = re.compile(r'<PATH id="\((\S+?)\)".*?>\n(.*?)\n?</PATH>', re.DOTALL)
GLM = """;; rules of a test
* name "test"
* format = 'NIST1'
* max_nrules = '2500'
* copy_no_hit = 'T'
* case_sensitive = 'F'
UH => (%HESITATION) / [ ] __ [ ]
UM => (%HESITATION) / [ ] __ [ ]
GONNA => GOING TO
OKAY => O. K. / [ ] __ [ ]
A LOT => ALOT / [ ] __ [ ]
;; INPUT_DEPENDENT_APPLICATION = "ctm"
HE'S => [{HE IS / HE HAS}] / [ ] __ [ ]
IT'S => [{IT'S / IT IS / IT HAS}] / [ ] __ [ ]
WELL => [{WELL / @}] / [ ] __ [ ]
"""
SPOKEN = [
    *("uh", "um", "gonna", "okay", "a", "lot", "alot", "he's", "it's", "it", "is", "he", "has"),
    *("well", "yes", "no", "be-", "ac-cent", "word", "speech", "%hesitation", "bear-", "-ing"),
]


def run_nist(folder, *command, **more):
    """Run one of NIST's programs in a directory; return what it printed."""
    environment = {**os.environ, "PATH": PATH}
    more = {"cwd": folder, "env": environment, "capture_output": True, "text": True} | more
    return subprocess.run(list(map(str, command)), check=True, **more).stdout


def read_steps(sgml):
    """The steps of sclite's alignments by utterance."""
    return {
        utt: "".join(item[0] for item in path.split(":") if item)
        for utt, path in STEPS.findall(sgml)
    }


def make_markup(rng, size, depth=0):
    """A random text with alternations, optional words and fragments."""
    parts = []
    for _ in range(size):
        if rng.random() < 0.2 and depth < 2:
            some = [
                "@" if rng.random() < 0.3 else make_markup(rng, rng.randint(1, 3), depth + 1)
                for _ in range(rng.randint(1, 3))
            ]
            parts.append("{ " + " / ".join(some) + " }")
        else:
            word = rng.choice(["a", "b", "c", "dd", "ddx", "e-", "-x", "ab"])
            parts.append(f"({word})" if rng.random() < 0.1 else word)
    return " ".join(parts)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("flags", "rules"),
    [([], Rules()), (["-D"], Rules(optional=True)), (["-F", "-D"], Rules(True, True))],
)
def test_alignments_of_markup(tmp_path, seed, flags, rules):
    rng = random.Random(seed)
    texts = {
        name: {f"s-{i}": make_markup(rng, rng.randint(0, 7)) for i in range(60)}
        for name in ("ref", "hyp")
    }
    for name, rows in texts.items():
        lines = "".join(f"{text} ({utt})\n" for utt, text in rows.items())
        (tmp_path / f"{name}.trn").write_text(lines)
    files = ["-r", "ref.trn", "trn", "-h", "hyp.trn", "trn"]
    out = run_nist(tmp_path, "sclite", *files, "-i", "spu_id", "-o", "sgml", "stdout", *flags)
    ours = {
        utt: align_texts(ref, texts["hyp"][utt], rules).steps for utt, ref in texts["ref"].items()
    }
    assert read_steps(out) == ours


def read_trn(path):
    """The texts of a trn with comments, markup kept."""
    lines = (line.strip() for line in path.read_text().splitlines() if line[:2] != ";;")
    return {m[2]: m[1].strip() for m in map(re.compile(r"(.*)\((\S+)\)").fullmatch, lines) if m}


@pytest.mark.parametrize(
    ("flags", "rules"),
    [
        ([], Rules()),
        (["-F"], Rules(fragments=True)),
        (["-D"], Rules(optional=True)),
        (["-F", "-D"], Rules(fragments=True, optional=True)),
    ],
)
def test_sclites_own_test(flags, rules):
    """Every step of NIST's own 57 utterances."""
    files = ["-r", "tests.ref", "trn", "-h", "tests.hyp", "trn", "-i", "spu_id"]
    theirs = read_steps(run_nist(NIST, "sclite", *files, "-o", "sgml", "stdout", *flags))
    refs, hyps = read_trn(NIST / "tests.ref"), read_trn(NIST / "tests.hyp")
    assert len(theirs) == 57
    assert theirs == {utt: align_texts(ref, hyps[utt], rules).steps for utt, ref in refs.items()}


def test_csrfilts_own_test(tmp_path):
    """The texts of NIST's own stm without hyphens, as NIST's file and Debian's csrfilt have it."""
    (tmp_path / "a.glm").write_text("* case_sensitive = 'F'\nQQ => Q\n")
    segments = read_segments(NIST / "test.stm.in")
    glm = GlobalMap(tmp_path / "a.glm")
    ours = [glm.rewrite(segment.text, "stm", "ref").split() for _, segment in segments]
    wanted = [segment.text.split() for _, segment in read_segments(NIST / "test.stm.-dh.out")]
    assert len(ours) == 6 and ours == wanted
    command = ["sh", DEBIAN / "csrfilt.sh", "-dh", "-i", "stm", "-t", "ref", "a.glm"]
    (tmp_path / "out.stm").write_text(
        run_nist(tmp_path, *command, input=(NIST / "test.stm.in").read_text())
    )
    assert ours == [segment.text.split() for _, segment in read_segments(tmp_path / "out.stm")]


def make_rules(rng):
    """A random global map of every form of rule."""
    sources = ["A", "B", "UH", "UH-HUH", "AB", "%HES", "X", "O.", "HE'S", "b", "A B", "[ A]"]
    targets = ["A", "(UH)", "[{A B / X}]", "[{ A / @ }]", "B C", "[ ]", "", "A-B", "(A B)", "Q/R"]
    contexts = ["[ ] __ [ ]", "[ ] __ ", "__ [ B]", "[A ] __ [ ]", "__", '"A " __ " "']
    lines = [f"* case_sensitive = '{rng.choice('TF')}'"]
    for _ in range(rng.randint(3, 14)):
        if rng.random() < 0.12:
            kind = rng.choice(["stm", "ctm", "trn", "(ctm)|(trn)", "hyp", "ref"])
            lines.append(f';;  INPUT_DEPENDENT_APPLICATION = "{kind}"')
        rule = f"{rng.choice(sources)} => {rng.choice(targets)}"
        rule += f" / {rng.choice(contexts)}" if rng.random() < 0.7 else ""
        lines.append(rule + (" ;; because A / B __" if rng.random() < 0.3 else ""))
    return ";; x\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("side", ["ref", "hyp"])
def test_global_maps(tmp_path, seed, side):
    rng = random.Random(seed)
    (tmp_path / "a.glm").write_text(make_rules(rng))
    words = ["a", "b", "uh", "uh-huh", "ab", "%hes", "x", "o.", "he's", "A", "B", "(uh)", "a-"]
    words += ["-b", "(a-)", "c", "{ a / b }"]
    texts = [" ".join(rng.choices(words, k=rng.randint(0, 8))) for _ in range(40)]
    lines = "".join(f"{text} (s-{i})\n" for i, text in enumerate(texts))
    command = ["sh", DEBIAN / "csrfilt.sh", "-dh", "-i", "trn", "-t", side, "a.glm"]
    theirs = run_nist(tmp_path, *command, input=lines).splitlines()
    if not theirs:
        pytest.skip("rfilter1 crashed on these rules")
    ours = GlobalMap(tmp_path / "a.glm")
    assert [line[: line.rindex("(s-")].split() for line in theirs] == [
        ours.rewrite(text, "trn", side).split() for text in texts
    ]


def make_speech(rng, confidences):
    """A random stm of three recordings, and a ctm with errors."""
    stm = [
        ';; CATEGORY "0" "" ""',
        ';; LABEL "O" "Overall" "All"',
        ';; CATEGORY "1" "Corpus" ""',
        ';; LABEL "en" "en" "CallHome"',
        ';; LABEL "sw" "sw" "Switchboard"',
    ]
    ctm = []
    for recording, channels in (("en_1", "AB"), ("sw_2", "AB"), ("Sw_3", "1")):
        for channel in channels:
            time, said = 0.0, 0
            for _ in range(rng.randint(1, 8)):
                words = rng.choices(SPOKEN, k=rng.randint(0, 8))
                end = round(time + 3 * rng.random(), rng.randint(2, 4))
                text = " ".join(words)
                if rng.random() < 0.2:
                    text = f"{{ {rng.choice(SPOKEN)} / {rng.choice(SPOKEN)} no }} {text}"
                if rng.random() < 0.1:
                    text = "IGNORE_TIME_SEGMENT_IN_SCORING"
                label = rng.choice(["<O,en>", "<O,sw>", ""])
                speaker = f"{recording}_{channel}"
                stm.append(f"{recording} {channel} {speaker} {time} {end} {label} {text}")
                at = time - 0.2 if time > 1 else time
                for word in words if said else [*words, "yes"]:
                    word = rng.choice(SPOKEN) if rng.random() < 0.15 else word
                    length, said = round(0.4 * rng.random(), 2), said + 1
                    row = f"{recording} {channel} {at:.2f} {length:.2f} {word}"
                    ctm.append(row + (f" {rng.random():.3f}" if confidences else ""))
                    at = round(at + length, 2)
                time = end if rng.random() < 0.7 else round(end + rng.random(), 2)
    return "\n".join(stm) + "\n", "\n".join(ctm) + "\n"


@pytest.mark.parametrize("seed", range(6))
def test_hub5(tmp_path, seed):
    """Every step of every segment, and all tables of words, as hubscr.pl has them."""
    stm, ctm = make_speech(random.Random(seed), confidences=bool(seed % 2))
    for name, text in {"a.glm": GLM, "r.stm": stm, "h.ctm": ctm}.items():
        (tmp_path / name).write_text(text)
    options = ["-V", "-g", "a.glm", "-l", "english", "-h", "hub5", "-r", "r.stm", "h.ctm"]
    run_nist(tmp_path, "perl", DEBIAN / "hubscr.pl", *options)
    theirs = read_steps((tmp_path / "h.ctm.filt.sgml").read_text())
    cut = cut_words(tmp_path / "r.stm", tmp_path / "h.ctm", GlobalMap(tmp_path / "a.glm"))
    refs, ours, numbers = References(cut.ref.texts, "wer:rules=hub5"), {}, {}
    for utt, segment in cut.segments.items():
        speaker = segment.speaker.lower()
        number = numbers[speaker] = numbers.get(speaker, -1) + 1
        ours[f"{speaker}-{number:03d}"] = refs.align(utt, cut.hyp.texts[utt]).steps
    assert theirs == ours
    errors = count_words(refs, cut.hyp.texts)
    table = (tmp_path / "h.ctm.filt.dtl").read_text()
    pairs = re.findall(r"^\s*\d+:\s+(\d+)\s+->\s+(\S+) ==> (\S+)", table, re.MULTILINE)
    assert {(ref, hyp): int(times) for times, ref, hyp in pairs} == errors.confusions
    for title, found in (("DELETIONS", errors.deletions), ("INSERTIONS", errors.insertions)):
        part = re.search(rf"^{title} .*?\n\s+-----", table, re.MULTILINE | re.DOTALL)[0]
        rows = re.findall(r"^\s*\d+:\s+(\d+)\s+->\s+(\S+)", part, re.MULTILINE)
        assert {word: int(times) for times, word in rows} == found
