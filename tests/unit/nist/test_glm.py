"""NIST's global maps; tests/interop/test_sctk.py compares with csrfilt.sh."""

import pytest

from lmtools.base.errors import UserError
from lmtools.nist.glm import GlobalMap, parse_rule

HEAD = ";; rules of a test\n* format = 'NIST1'\n* case_sensitive = 'F'\n"


@pytest.fixture
def rules(tmp_path):
    def make(*lines, head=HEAD):
        (tmp_path / "a.glm").write_text(head + "\n".join(lines) + "\n")
        return GlobalMap(tmp_path / "a.glm")

    return make


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("UH => %HES / [ ] __ [ ]", "uh duh uh-huh uh", "%HES DUH UH HUH %HES"),
        ("OK => O. K.", "ok book", "O. K. BOO. K."),
        ("FALKNER => FAULKNER / [WILLIAM ] __", "falkner william falkner", None),
        ("GOOD BY => GOOD BYE ;; as the dictionary has it", "good by", "GOOD BYE"),
        ("UH =>", "uh a", "A"),
        ("UM => (UH) / [ ] __ [ ]", "um (so) a", "(UH) (SO) A"),
        ("UM => UH", "(um a)", "(UH) (A)"),
        ("HE'S => [{HE IS / HE HAS}] / [ ] __ [ ]", "he's", "{HE IS / HE HAS}"),
        ("A B => C", "a b", "C"),
    ],
)
def test_rules(rules, line, text, expected):
    expected = expected or "FALKNER WILLIAM FAULKNER"
    assert rules(line).rewrite(text, "stm", "ref") == expected


def test_the_first_rule_that_fits_is_applied_and_its_output_is_not_looked_at(rules):
    made = rules("A => B", "B => C", "A B => D")
    assert made.rewrite("a b", "stm", "ref") == "B C"


def test_rules_for_one_side(rules):
    limit = ';; INPUT_DEPENDENT_APPLICATION = "CTM"'
    made = rules("UH => UM", limit, "IT'S => [{IT IS / IT HAS}] / [ ] __ [ ]")
    assert made.rewrite("uh it's", "stm", "ref") == "UM IT'S"
    assert made.rewrite("uh it's", "ctm", "hyp") == "UM {IT IS / IT HAS}"


def test_words_of_a_ctm_are_rewritten_one_by_one(rules):
    made = rules("A LOT => ALOT")
    assert made.rewrite("a lot", "ctm", "hyp") == "A LOT"
    assert made.rewrite("a lot", "trn", "hyp") == "ALOT"


def test_case(rules):
    made = rules("uh => um", head=";; x\n* case_sensitive = 'T'\n")
    assert made.rewrite("uh", "stm", "ref") == "UH"  # texts are in upper case
    assert rules("uh => um").rewrite("UH", "stm", "ref") == "um"


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["A -> B"], r"a.glm:4: no rule"),
        (["* name"], "a.glm:4: a setting without a value"),
        (["* format = 'NIST9'"], "a.glm:4: format 'NIST9'"),
        ([';; INPUT_DEPENDENT_APPLICATION = "("', "A => B"], "a.glm:4: .* regular expression"),
    ],
)
def test_what_is_no_map(rules, lines, cause):
    with pytest.raises(UserError, match=cause):
        rules(*lines)


def test_parentheses_that_are_not_in_pairs(rules):
    with pytest.raises(UserError, match="here:1: parentheses"):
        rules("A => B").rewrite("a (b", "stm", "ref", "here:1")


def test_a_slash_inside_brackets_is_no_context():
    assert parse_rule("A => [B / C]", "x").target == "[B"  # as rfilter1 reads it
    assert parse_rule("A => [B / C] / [ ] __ [ ]", "x").target == "B / C"


def test_signature_is_of_the_content(rules):
    first, second = rules("A => B").signature, rules("A => C").signature
    assert first.startswith("glm:a.glm:") and first != second
