"""utils/papers/check.py, on a made-up paper and a made-up checkout."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import yaml

SCRIPT = Path(__file__).parents[2] / "utils/papers/check.py"
PAPER = {
    "settings": {
        "model": {"layers": 3, "width": "512, tied; about 30k words", "seeds": "not stated"},
        "text": "a billion words",
        "list size": 50,
        "optimiser": "Nesterov momentum 0.99",
    },
    "figures": {"1": {"what": "a drawing", "numbers": {}}, "2": {"what": "", "numbers": {"x": 40}}},
    "other results": {"largest": "31.9, 2 weeks"},
    "equations": {"1": "p = q"},
    "tables": {
        "1": {
            "columns": ["name", "TINY-2"],
            "rows": [["lookup", 128], ["conv1", "[4, 8] x 1"], ["conv2.x", "[4, 8; 1, 8] x 2"]],
        },
        "2": {
            "uncertain": ["7.1 is hard to read."],
            "columns": ["lists", "method", "dev", "test"],
            "rows_printed": [["A", "LM", "7.10", "-"], ["A", "T-TA", "6.9", "7"]],
        },
    },
}
NOTES = """# A paper

## Equations

- **Eq. 2, gate.** a . b

## Claims

1. The gate is better.
"""
DECLARED = {
    "reasons": {"text": "the text is the user's"},
    "toy": {
        "label": "TOY",
        "settings": {
            "model": {
                "layers": {"ours": "conf/{a,b}.yaml:arch.layers"},
                "width": [
                    {"text": "512", "ours": "conf/a.yaml:arch.dim", "here": 64, "why": "small"},
                    {"text": "tied", "is": True, "ours": "conf/a.yaml:arch.tied"},
                    {"text": "about 30k", "ours": "egs/toy/run.sh:vocab_size"},
                ],
                "seeds": {"ours": "conf/a.yaml:seed", "here": 1, "why": "not told"},
            },
            "text": {"why": "text"},
            "list size": {"ours": "egs/toy/run.sh:depth@full"},
            "optimiser": [
                {"text": "Nesterov", "is": "adam", "ours": "conf/a.yaml:optim.name"},
                {"text": "momentum 0.99", "ours": "egs/toy/local/gate.py:MOMENTUM"},
            ],
        },
        "figures": {"1": {"why": "text"}, "2": {"report": "egs/toy/conf/papers.yaml"}},
        "other results": {"largest": {"said": "egs/toy/README.md"}},
        "equations": {
            "1": {"code": "egs/toy/local/gate.py:scale"},
            "Eq. 2, gate": {"code": "egs/toy/local/gate.py"},
        },
        "tables": {
            "1": {
                "TINY-2": {
                    "lookup": {"holds": "egs/toy/README.md:128 wide"},
                    "blocks": {"ours": "egs/toy/conf/net.yaml:blocks"},
                }
            },
            "2": {"report": "egs/toy/conf/papers.yaml"},
        },
    },
}
PAGE = """128 wide, 31.9 in 2 weeks

| claim | ours |
|---|---|
| TOY 1 | holds |
"""
RECIPE = """vocab_size= # pieces
depth=
mini) depth=20 ;;
full) depth=50 ;;
  : "${vocab_size:=400}"
  : "${vocab_size:=30000}"
"""
GATES = '''"""Gates (Eqs. 2-4)."""

MOMENTUM = 0.99


def scale():
    """Eqs. 1 and 5"""
'''
FILES = {
    "conf/a.yaml": "{model: tta, objective: autoencoding, arch: {dim: 64}}",
    "conf/b.yaml": "base: a.yaml",
    "egs/toy/run.sh": RECIPE,
    "egs/toy/local/gate.py": GATES,
    "egs/toy/conf/net.yaml": 'blocks: ["[4, 8]", "[4, 8; 1, 8] x 2"]',
    "egs/toy/README.md": PAGE,
    "egs/toy/conf/papers.yaml": """
citations: {toy: {label: TOY, text: Toy et al.}}
tables:
- {paper: toy, table: 2, title: t, only: A, corpus: c, theirs: t, beside: {},
  uncertain: 7.1 is hard to read, columns: [method, ours, dev, test],
  rows: [[LM, "", "7.10?", ""], [T-TA, tta, 6.9, 7]]}
readings: [{paper: toy, figure: 2, beside: grid, text: t, x: [40]}]
""",
}


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("check_papers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_papers"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SCRIPT.parent))


def write(
    root: Path, paper=PAPER, notes=NOTES, declared=DECLARED, files=FILES
) -> tuple[Path, Path]:
    """papers.json and its notes, and a checkout with what is declared of it."""
    for name, text in {
        **files,
        "papers/papers.json": json.dumps({"toy": paper}),
        "papers/toy.md": notes,
        "utils/papers/papers.yaml": yaml.safe_dump(declared),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root / "papers/papers.json", root / "utils/papers/papers.yaml"


def errors(check, *where) -> list[str]:
    return [
        f"{' / '.join(line.place)}: {line.reason}"
        for line in check.compare_papers(*where)
        if line.verdict == check.ERROR
    ]


def altered(tree: dict, place: str, value) -> dict:
    """A copy with another value at a place, or without it."""
    copy = json.loads(json.dumps(tree))
    *above, last = place.split("/")
    node = copy
    for name in above:
        node = node[int(name) if isinstance(node, list) else name]
    if value is None:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return copy


def test_a_row_that_two_reports_quote(check, tmp_path):
    """What of ours stands beside it may differ, its cells may not."""
    report = "egs/toy/conf/papers.yaml"
    other = FILES[report].replace("LM | -", "LM | lstm")
    files = {**FILES, "egs/other/conf/papers.yaml": other}
    assert errors(check, *write(tmp_path, files=files)) == []
    files["egs/other/conf/papers.yaml"] = other.replace("7.10?", "7.2")
    (error,) = errors(check, *write(tmp_path, files=files))
    assert error == "TOY / tables / 2 / LM: quoted, but not in the papers"


def test_what_agrees_or_has_its_reason_is_no_error(check, tmp_path):
    lines = list(check.compare_papers(*write(tmp_path)))
    assert [line for line in lines if line.verdict == check.ERROR] == []
    verdicts = {" / ".join(line.place): (line.verdict, line.reason) for line in lines}
    assert verdicts["TOY / settings / model / layers"] == (check.AGREES, "")
    by = {" / ".join(line.place): line.by for line in lines}
    assert by["TOY / settings / model / layers"] == check.VALUE
    assert by["TOY / equations / 1"] == by["TOY / tables / 2 / A T-TA"] == check.TEXT
    assert by["TOY / settings / text"] == ""
    assert verdicts["TOY / settings / text"] == (check.NONE, "the text is the user's")
    assert verdicts["TOY / settings / model / seeds"] == (check.DIFFERS, "not told")
    assert len([place for place in verdicts if "tables / 2" in place]) == 3


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("settings/model/layers", 4, "layers: ours is 3, and no reason"),
        (
            "settings/model/width",
            "64, tied; about 30k words",
            "width: the paper does not say '512'",
        ),
        ("settings/model/width", "512, tied; 8 of 30k; about 30k", "width: no entry speaks of"),
        ("settings/model/heads", 8, "heads: no entry says what stands for it"),
        ("settings/text", None, "text: declared, but not in the papers"),
        ("settings/list size", 100, "list size: ours is 50, and no reason"),
        ("figures/2/numbers/x", 30, "x: egs/toy/conf/papers.yaml does not have 30.0 of Figure 2"),
        ("other results/largest", "31.9, 3 weeks", "largest: egs/toy/README.md does not have 3.0"),
        ("equations/7", "p", "equations / 7: no entry"),
        ("tables/1/rows/2", ["conv2.x", "[4, 8] x 2"], "blocks: ours is"),
        (
            "tables/2/rows_printed/0/2",
            "7.11",
            "tables / 2 / A LM: egs/toy/conf/papers.yaml does not",
        ),
        ("tables/2/rows_printed/0/2", "7.11", "tables / 2 / LM: quoted, but not in the papers"),
        ("tables/3", {"columns": ["a"], "rows_printed": [["b"]]}, "tables / 3 / b: no entry"),
    ],
)
def test_another_paper_is_told(check, tmp_path, place, value, said):
    found = errors(check, *write(tmp_path, altered(PAPER, place, value)))
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("toy/settings/model/width/0/here", 32, "width: ours is 64, the reason is of 32"),
        ("toy/settings/model/layers/why", "deep", "layers: both agree: the reason is stale"),
        (
            "toy/settings/model/layers/ours",
            "conf/a.yaml:arch.depth",
            "conf/a.yaml has no arch.depth",
        ),
        ("toy/settings/model/layers/ours", "conf/c.yaml:arch.layers", "conf/c.yaml is not there"),
        ("toy/settings/model/seeds", {"text": "not stated"}, "seeds: the entry names nothing"),
        ("toy/settings/list size", None, "list size: no entry says what stands for it"),
        ("toy/settings/epochs", {"why": "text"}, "epochs: declared, but not in the papers"),
        ("toy/tables/1/TINY-2/lookup/holds", "conf/a.yaml:128 wide", "does not have '128 wide'"),
        ("toy/settings/text", {"said": "egs/toy/README.md"}, "text: has no figure to look for"),
        (
            "toy/other results/largest",
            {"said": "egs/toy/README.md", "here": 40.5, "why": "text"},
            "largest: egs/toy/README.md does not have 40.5",
        ),
        ("reasons/idle", "none", "reasons / idle: no entry has it"),
        ("other", {}, "other: declared, but not in the papers"),
    ],
)
def test_another_declaration_is_told(check, tmp_path, place, value, said):
    found = errors(check, *write(tmp_path, declared=altered(DECLARED, place, value)))
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("conf/b.yaml", "base: a.yaml", "{base: a.yaml, arch: {layers: 2}}", "layers: ours is 2"),
        ("egs/toy/run.sh", "=30000", "=20000", "width: ours is 20000"),
        ("egs/toy/local/gate.py", "0.99", "0.9", "optimiser: ours is 0.9"),
        ("egs/toy/local/gate.py", "Eqs. 1 and 5", "Eqs. 3 and 5", "does not say 'Eq. 1'"),
        ("egs/toy/local/gate.py", "2-4", "3-4", "does not say 'Eq. 2'"),
        ("egs/toy/README.md", "| TOY 1 |", "| TOY 2 |", "claims / 1: no egs/*/*.md"),
        (
            "egs/toy/conf/papers.yaml",
            "uncertain: 7.1 is hard to read, ",
            "",
            "says of nothing that it is uncertain",
        ),
        ("egs/toy/conf/papers.yaml", "6.9", "6.8", "tables / 2 / A T-TA: egs/toy/conf/papers.yaml"),
    ],
)
def test_other_files_are_told(check, tmp_path, name, old, new, said):
    files = {**FILES, name: FILES[name].replace(old, new)}
    assert files[name] != FILES[name]
    found = errors(check, *write(tmp_path, files=files))
    assert any(said in line for line in found), found


def test_exit_status(check, tmp_path, monkeypatch, capsys):
    papers, declared = write(tmp_path)
    monkeypatch.setattr(sys, "argv", ["check_papers.py", str(papers), "--declared", str(declared)])
    with pytest.raises(SystemExit) as leaving:
        check.main()
    assert not leaving.value.code
    printed = capsys.readouterr().out.splitlines()
    rows = [line.rpartition(" | ")[2].partition(":")[0] for line in printed[1:-1]]
    counts = {row: rows.count(row) for row in rows}
    assert set(counts) == {"agrees by value", "agrees by text", "differs by value", "none"}
    assert printed[-1] == (
        f"{len(rows)} lines: agree {counts['agrees by value']} by value and"
        f" {counts['agrees by text']} by text; differ {counts['differs by value']} by value and 0"
        f" by text, and {counts['none']} have nothing here, each with its reason; 0 errors"
    )
    write(tmp_path, altered(PAPER, "settings/model/layers", 4))
    with pytest.raises(SystemExit) as leaving:
        check.main()
    assert leaving.value.code == 1
