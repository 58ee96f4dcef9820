"""The page in a real browser: filters, search, keys and the address work, and hostile text is only
text.
"""

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from unit.report.conftest import collect_rescoring

from lmtools.report.write import browser_data, embedded

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
OFF = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--virtual-time-budget=2000",
    "--window-size=1000,1200",
    "--dump-dom",
)


@pytest.fixture(scope="module")
def page(reported) -> Path:
    return reported / "report/index.html"


@pytest.fixture(scope="module")
def rows(exp):
    """Of each tested utterance: id, errors of the first pass and T-TA, what is searched."""
    data = browser_data(collect_rescoring(exp).browsed)
    names = [name for name, _ in data["systems"]]
    base, system = names.index("@first"), names.index("tta")
    found = []
    for utt, ref, hyps, choices, _ in data["sets"][0]["utts"]:
        (old, old_operations), (new, new_operations) = hyps[choices[base]], hyps[choices[system]]
        wrong = [
            len(operations.replace("C", "")) for operations in (old_operations, new_operations)
        ]
        found.append((utt, *wrong, "\n".join([utt, ref, old, new]).lower()))
    return found


def dom(path: Path, **state) -> str:
    """The document after its script ran, asked for with `state` in the address."""
    with tempfile.TemporaryDirectory() as profile:
        url = f"{path.as_uri()}#{urlencode({'sort': 'file'} | state)}"
        call = [
            CHROMIUM,
            *FLAGS,
            *(f"--disable-{name}" for name in OFF),
            f"--user-data-dir={profile}",
            url,
        ]
        done = subprocess.run(call, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def driven(page: Path, folder: Path, script: str) -> str:
    """The document after `script`, for which its policy is taken out."""
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    copy = folder / "driven.html"
    copy.write_text(source.replace("</body>", f"<script>{script}</script></body>"))
    return dom(copy)


def shown(document: str) -> list[str]:
    """Ids of the utterances that the list shows, in order."""
    return re.findall(r'<li class="utt"[^>]*><div class="head"><b>([^<]*)</b>', document)


def count(document: str) -> str:
    return re.search(r'<output id="count"[^>]*>([^<]*)</output>', document)[1]


def test_everything_at_first(page, rows):
    def change(row):
        *_, old, new = row[3].split("\n")
        return -abs(row[2] - row[1]), old == new

    document = dom(page, system="tta", sort="")  # the page's own order
    assert shown(document) == [row[0] for row in sorted(rows, key=change)]
    assert count(document) == f"{len(rows)} of {len(rows)} utterances"


@pytest.mark.parametrize("kind", ["better", "worse", "same"])
def test_filters(page, rows, kind):
    wanted = [
        utt
        for utt, old, new, _ in rows
        if {"better": new < old, "worse": new > old, "same": new == old}[kind]
    ]
    document = dom(page, system="tta", show=kind)
    assert shown(document) == wanted
    assert f">{'same errors' if kind == 'same' else kind} {len(wanted)}<" in document


def test_search_finds_words_and_ids(page, rows):
    wanted = [row for row in rows if "unto" in row[3]]
    assert 0 < len(wanted) < len(rows)
    document = dom(page, system="tta", q="UNTO ", sort="improved")
    assert shown(document) == [row[0] for row in sorted(wanted, key=lambda row: row[2] - row[1])]
    assert shown(dom(page, q="test-0007")) == ["test-0007"]


def test_search_does_not_mind_capitals(page, rows):
    capital = re.search(
        r"[A-Z][a-z]{4,}",
        page.read_text()
        .partition('id="data">')[2]
        .partition('"name":"dev"')[0]
        .partition('"utts"')[2],
    )[0]
    document = dom(page, system="tta", q=capital.lower())
    assert shown(document) == [row[0] for row in rows if capital.lower() in row[3]] != []


def test_words_are_coloured_by_their_alignment(page, exp, rows):
    document = dom(page, system="tta")
    text = re.search(r'<dd class="base">(.*?)</dd>', document)[1]
    items = re.findall(r'<li class="utt".*?</li>', document, re.DOTALL)
    for item, (_, old, new, _) in zip(items, rows, strict=True):
        for kind, errors in (("base", old), ("system", new)):
            text = re.search(rf'<dd class="{kind}">(.*?)</dd>', item)[1]
            assert len(re.findall(r'class="(?:sub|ins|del)"', text)) == errors
            heard = re.sub(r"<del.*?</del>", "", text)
            words = unescape(re.sub(r"<[^>]*>", "", heard)).lower().split()
            assert "\n" + " ".join(words) in "\n".join(row[3] for row in rows) + "\n"


def test_hostile_text_is_inert(page, tmp_path):
    document = driven(page, tmp_path, "")  # even without the policy
    assert "owned" in document
    assert "<title>owned" not in document
    assert 'src="x"' not in document
    assert "<b>bold" not in document
    assert "&lt;b&gt;bold" in document


def test_typing_choosing_and_keys(page, tmp_path, rows):
    script = """
      const put = (id, value, event) => {
        document.getElementById(id).value = value;
        document.getElementById(id).dispatchEvent(new Event(event, { bubbles: true }));
      };
      const press = (key) => (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const where = [];
      const note = () => where.push(document.activeElement.querySelector?.("b")?.textContent ?? document.activeElement.id);
      put("system", "tta", "change");
      document.querySelector("input[value=better]").click();
      for (const key of ["j", "j", "k", "Enter"]) { press(key); note(); }
      setTimeout(() => {
        const lines = document.activeElement.querySelectorAll("details[open] dt").length;
        press("/");
        note();
        press("j");
        note();
        put("search", "test-0", "input");
        document.title = JSON.stringify({ where, lines, hash: location.hash });
      }, 200);
    """
    document = driven(page, tmp_path, script)
    result = json.loads(unescape(re.search(r"<title>(.*?)</title>", document)[1]))
    better = [utt for utt, old, new, _ in rows if new < old]
    assert result["where"] == [better[0], better[1], better[0], better[0], "search", "search"]
    assert result["lines"] >= 2
    assert "show=better" in result["hash"]
    assert "q=test-0" in result["hash"]
    assert shown(document) == better


@pytest.fixture(scope="module")
def long_page(page, tmp_path_factory):
    """The page with the test set's utterances many times over, and their ids."""
    head, data, tail = re.fullmatch(
        r'(.*id="data">)(.*?)(</script>.*)', page.read_text(), re.DOTALL
    ).groups()
    tree = json.loads(data)
    utts = tree["sets"][0]["utts"]
    many = [[f"{utt}-{copy}", *rest] for copy in range(3000 // len(utts)) for utt, *rest in utts]
    tree["sets"][0]["utts"] = many
    path = tmp_path_factory.mktemp("long") / "index.html"
    path.write_text(head + embedded(tree) + tail)
    return path, [utt for utt, *_ in many]


def test_long_lists_are_drawn_as_they_are_needed(long_page):
    path, ids = long_page
    document = dom(path)
    assert count(document) == f"{len(ids)} of {len(ids)} utterances"
    drawn = shown(document)
    assert drawn == ids[: len(drawn)]
    assert 25 <= len(drawn) < 400
    assert shown(dom(path, q=ids[-1])) == [ids[-1]]


def test_keys_go_on_where_nothing_is_drawn_yet(long_page, tmp_path):
    path, ids = long_page
    script = """
      for (let i = 0; i < 101; i++) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
      document.title = document.activeElement.querySelector("b").textContent;
    """
    assert f"<title>{ids[100]}</title>" in driven(path, tmp_path, script)
