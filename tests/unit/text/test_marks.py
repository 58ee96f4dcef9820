import subprocess
import sys
from pathlib import Path

import pytest

from lmtools.text.marks import drop_marks, find_marks


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("[Music]", "[Music]"),
        ("[Music playing] so it goes (all laughing).", "[Music playing];(all laughing)"),
        ("♪ la la ♪♫", "♪;♪♫"),
        ("<|en|><|transcribe|>yes<|endoftext|>", "<|en|>;<|transcribe|>;<|endoftext|>"),
        ("*sighs* <unk> ++NOISE++ </s> !SIL (hm)", "*sighs*;<unk>;++NOISE++;</s>;!SIL;(hm)"),
        ("the red |0-1| fox |2-2,wa=0-0| <s>so fox</s> | 1-2 |", "|0-1|;|2-2,wa=0-0|;<s>;</s>"),
        ("f*ck and sh*t, ami(e)s of 2 * a * b (1999) !silly a<b 1|0-1|", ""),
        ("", ""),
    ],
)
def test_what_stands_for_no_word(text, marks):
    assert ";".join(find_marks(text)) == marks


def test_what_is_left():
    assert drop_marks("[Music playing] so it goes (audience laughing) ♪") == "so it goes"
    assert drop_marks("<|en|>yes<|endoftext|>") == "yes"
    assert drop_marks("[BLANK_AUDIO]") == ""


SCRIPT = Path(__file__).parents[3] / "utils/detokenise.py"


def detokenised(text: bytes, *options):
    """What the script makes of standard input."""
    return subprocess.run([sys.executable, SCRIPT, *options], input=text, capture_output=True)


def test_a_file_line_by_line():
    """Every line stays one, empty ones included, and Unicode's other line separators end none."""
    done = detokenised("a , b\n\nc&apos; est\u2028l &quot; é &quot; .\n".encode(), "fr")
    assert done.stdout.decode() == 'a, b\n\nc\'est l "é".\n'


def test_mistakes_are_one_line():
    for text, language, cause in (
        (b"a\n", "French", b"not a language code"),
        (b"\xff\n", "fr", b"-:1: not UTF-8"),
    ):
        done = detokenised(text, language)
        assert done.returncode == 1 and cause in done.stderr and done.stderr.count(b"\n") == 1
