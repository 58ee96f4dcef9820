"""The verb: what it writes, prints and refuses."""

import webbrowser

import pytest

from lmtools.cli import main


def test_writes_and_prints(fresh, capsys):
    assert main(["report", str(fresh), "--title", "my corpus"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("WER after rescoring: test\nsystem ")
    assert "T-TA + n-gram" in out
    names = {path.name for path in (fresh / "report").iterdir()}
    assert {
        "RESULTS.md",
        "index.html",
        "learning.png",
        "length-test.png",
        "depth-test.png",
    } <= names
    assert "index.html" in err
    results = (fresh / "report/RESULTS.md").read_text()
    assert results.startswith("# Results: my corpus\n")
    assert "--title 'my corpus'`" in results
    for name in names - {"RESULTS.md", "index.html", "rows.csv"}:
        assert f"]({name})" in results


def test_links_where_the_report_belongs(fresh, undrawn, tmp_path, capsys):
    """None is written through, nor is anything taken away behind one."""
    kept = tmp_path / "kept"
    kept.write_text("kept")
    (fresh / "report").mkdir(exist_ok=True)
    for name in ("RESULTS.md", "index.html", "rows.csv", "learning.png"):
        (fresh / "report" / name).unlink(missing_ok=True)
        (fresh / "report" / name).symlink_to(kept)
    assert main(["report", str(fresh)]) == 0
    assert kept.read_text() == "kept" and not (fresh / "report/RESULTS.md").is_symlink()
    (fresh / "report").rename(tmp_path / "elsewhere")
    (fresh / "report").symlink_to(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["report", str(fresh)]) == 1
    assert "report: a link stands where the report belongs; remove it" in capsys.readouterr().err


def test_says_what_does_not_fit(fresh, undrawn, capsys):
    path = fresh / "rescore/tta/test.txt"
    path.write_text("".join(line.split()[0] + "\n" for line in path.read_text().splitlines()))
    assert main(["report", str(fresh)]) == 0
    assert (
        "Warning: T-TA on test: the rescored text has 100.00, the weights choose"
        in capsys.readouterr().err
    )


def test_a_figure_that_is_no_longer_drawn_goes(fresh, undrawn):
    assert main(["report", str(fresh)]) == 0
    (fresh / "report/speed.png").touch()  # of a script of a recipe
    assert main(["report", str(fresh)]) == 0
    assert not (fresh / "report/speed.png").exists()
    assert (fresh / "report/learning.png").exists()


@pytest.mark.parametrize(
    "path", ["rescore/tta/test.txt", "ppl/tta/test.json", "tune/tta/weights.json"]
)
def test_a_mistake_is_one_line_and_writes_nothing(fresh, capsys, path):
    (fresh / path).write_text("other-1 some words\n")
    assert main(["report", str(fresh)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert path in line
    assert ";" in line
    assert not (fresh / "report").exists()


@pytest.mark.parametrize("opens", [True, False])
def test_the_page_opens_in_a_browser(fresh, monkeypatch, capsys, opens):
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or opens)
    assert main(["report", str(fresh), "--open"]) == 0
    page = (fresh / "report/index.html").resolve()
    assert addresses == [page.as_uri()] and page.is_file()
    assert (f"{page}: no browser opens here" in capsys.readouterr().err) != opens
