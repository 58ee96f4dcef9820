"""The page needs nothing from outside, holds all utterances, and no text of theirs becomes
markup.
"""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.report.conftest import collect_rescoring

from lmtools.formats import kaldi_text
from lmtools.report import write_report
from lmtools.report.write import browser_data, embedded


@pytest.fixture(scope="module")
def page(reported) -> str:
    return (reported / "report/index.html").read_text()


class Elements(HTMLParser):
    """Tags with their attributes, and the content of script elements by id."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.inside = [], {}, None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = dict(attrs).get("id", tag)
            self.scripts[self.inside] = ""

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.scripts[self.inside] += data


@pytest.fixture(scope="module")
def elements(page):
    parser = Elements()
    parser.feed(page)
    return parser


def test_nothing_from_outside(page, elements):
    links = [
        value
        for _, attributes in elements.tags
        for name, value in attributes.items()
        if name in ("src", "srcset", "href", "action", "data")
    ]
    assert len(links) > 10
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in links)
    assert not re.search(
        r"@import|url\(|fetch\(|XMLHttpRequest|import\(|innerHTML|document\.write", page
    )


def test_policy_allows_this_style_and_this_script_only(elements):
    (policy,) = [
        attributes["content"]
        for tag, attributes in elements.tags
        if tag == "meta" and "http-equiv" in attributes
    ]
    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["img-src"] == "data:"
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(elements.scripts[name].encode()).digest()).decode()
        assert directives[f"{name}-src"] == f"'sha256-{digest}'"
    assert not any(
        name.startswith("on") or name == "style"
        for _, attributes in elements.tags
        for name in attributes
    )


def test_data_holds_every_utterance_and_choice(exp, elements):
    data = json.loads(elements.scripts["data"])
    names = [name for name, _ in data["systems"]]
    assert " ".join(names) == "@first @oracle first-pass ngram causal masked tta tta+ngram all"
    assert [one["name"] for one in data["sets"]] == ["test", "dev"]
    for one in data["sets"]:
        refs = kaldi_text.read(exp.parent / "data" / one["name"] / "text")
        assert {utt: ref for utt, ref, *_ in one["utts"]} == refs
        for name in ("tta", "all"):
            texts = {
                utt: hyps[choices[names.index(name)]][0] for utt, _, hyps, choices, _ in one["utts"]
            }
            assert texts == kaldi_text.read(exp / "rescore" / name / f"{one['name']}.txt")


def test_operations_spell_reference_and_hypothesis(exp):
    found = collect_rescoring(exp)
    sets, data = found.lists.sets, browser_data(found.browsed)
    for one in data["sets"]:
        for _, ref, hyps, *_ in one["utts"]:
            for text, operations in hyps:
                assert sum(op in "CSD" for op in operations) == len(ref.split())
                assert sum(op in "CSI" for op in operations) == len(text.split())
    tta = [name for name, _ in data["systems"]].index("tta")
    errors = sum(
        len(hyps[choices[tta]][1].replace("C", ""))
        for _, _, hyps, choices, _ in data["sets"][0]["utts"]
    )
    assert errors == sets[1].results["tta"].statistics[:, :3].sum()


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
@settings(max_examples=100, deadline=None)
def test_embedded_json_is_the_same_json_and_no_markup(tree):
    text = embedded(tree)
    assert json.loads(text) == tree
    assert not set(text) & set("<>&\u2028\u2029")


def test_hostile_text_stays_inside_the_data(page, elements):
    assert "<b>" not in page
    assert page.count("</script") == 2
    assert not [
        attributes
        for tag, attributes in elements.tags
        if tag == "img" and attributes.get("src") == "x"
    ]


def test_hostile_title_is_text(fresh, undrawn):
    title = "</title><script>alert(1)</script> & *bold*"
    write_report(fresh, title=title, command="lmtools report '<i>'")
    source = (fresh / "report/index.html").read_text()
    assert "<script>alert" not in source
    assert "<i>" not in source
    assert "&lt;script>alert(1)" in (fresh / "report/RESULTS.md").read_text()


def test_same_input_same_bytes(reported):
    files = sorted((reported / "report").iterdir())
    before = {path.name: path.read_bytes() for path in files}
    write_report(reported)
    assert {path.name: path.read_bytes() for path in files} == before
