"""What the house is counted by: `python tests/house.py [TREE]` prints the figures of a checkout."""

import ast
import functools
import graphlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
from shell_scripts import count_scripts

ROOT = Path(__file__).parent.parent
# where a run begins: the command, what ESPnet imports by name, and what a user's program does
ENTRIES = (
    *("lmtools.__main__", "lmtools.cli"),
    *("lmtools.bridges.espnet.__main__", "lmtools.bridges.espnet.plugin"),
)
PUBLIC = {"lmtools", "lmtools.cli", "lmtools.__main__", "lmtools.lattice"}  # what tests may know
ROOMS = ("lmtools.verbs", "lmtools.api", "lmtools.bridges.decoders")


def read_sources(tree: Path, folder: str = "lmtools") -> dict[Path, str]:
    """The Python files of a folder of the checkout `tree`, by path relative to it."""
    return {
        path.relative_to(tree): path.read_text() for path in sorted((tree / folder).rglob("*.py"))
    }


def count_flags(sources: dict[Path, str]) -> Counter:
    """How often each flag (`--out`) is declared: by a call of add_argument, in a dictionary of
    what argparse takes for it, or as a field of a class that becomes flags.
    """
    flags, kinds, parts = Counter(), set(), set()
    texts = sources.values()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.Subscript) and "flags_of(" in ast.unparse(node.value):
                flags[node.slice.value] += 1  # one of a class
                parts.add(id(node.value))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "flags_of":
                kinds |= {ast.unparse(node.args[0])} if id(node) not in parts else set()
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                names = node.args
            elif isinstance(node, ast.Dict):  # one of other names (`--old: --new`) declares nothing
                pairs = zip(node.keys, node.values, strict=True)
                names = [key for key, value in pairs if not isinstance(value, ast.Constant)]
            words = [name.value for name in names if isinstance(name, ast.Constant)]
            flags.update(word for word in words if re.fullmatch(r"--[a-z0-9-]+", str(word)))
    return flags + Counter(name for text in texts for name in list_declared(text, kinds))


def list_declared(text: str, kinds: set[str] | None = None) -> Iterator[str]:
    """The fields of the classes `kinds`, or of all, that are declared as options, as flags are
    spelt, whatever else spells them: a name after --set, an option in the value of --lm.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and (kinds is None or node.name in kinds):
            for field in node.body:
                call = getattr(field, "value", None)
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "option":
                    yield f"--{field.target.id.replace('_', '-')}"


def knows_internals(text: str) -> bool:
    """Whether a test imports a module of lmtools that is not PUBLIC."""
    modules = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "lmtools":
            modules |= {f"lmtools.{name.name}" for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    inside = {f"lmtools.{path.stem}" for path in (ROOT / "lmtools").iterdir()}
    return any(
        name not in PUBLIC and (name in inside or name.count(".") > 1)
        for name in modules
        if name.partition(".")[0] == "lmtools"
    )


def find_classes(sources: dict[Path, str]) -> dict[str, list[str]]:
    """The modules that define a class at their top level, by the class's name."""
    found = defaultdict(list)
    for path, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path))
    return found


def measure_functions(sources: dict[Path, str]) -> list[int]:
    """The lines of every function, shortest first."""
    return sorted(
        node.end_lineno - node.lineno + 1
        for text in sources.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    )


def count_wide(sources: dict[Path, str]) -> tuple[int, int]:
    """Functions of eight or more parameters, calls of more than four positional arguments."""
    parameters = calls = 0
    for text in sources.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                parameters += len([one for one in every if one.arg not in ("self", "cls")]) >= 8
            elif isinstance(node, ast.Call):
                starred = any(isinstance(one, ast.Starred) for one in node.args)
                calls += len(node.args) > 4 and not starred
    return parameters, calls


def find_cycles(graph: grimp.ImportGraph) -> Iterator[list[str]]:
    """Cycles of modules that import each other, one after another until none is left."""
    imports = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    while True:
        try:
            graphlib.TopologicalSorter(imports).prepare()
            return
        except graphlib.CycleError as error:
            cycle = error.args[1][::-1]
            yield cycle
            imports[cycle[0]].discard(cycle[1])


def find_named(sources: dict[Path, str]) -> set[str]:
    """Modules of doors that strings name: what a door brings, and what the core opens it for."""
    texts = "\n".join(sources.values())
    opened = re.findall(r'open_door\(\s*"(\w+)",\s*"([\w.]+)', texts)
    return {
        *re.findall(r'"(lmtools\.[\w.]+)', texts),
        *(f"lmtools.{door}.{module}" for door, module in opened),
    }


def find_unreached(graph: grimp.ImportGraph, named: set[str]) -> set[str]:
    """Modules that no verb imports, directly or through others; those `named` are imported."""
    entries = {*ENTRIES, *named}
    waiting = [name for name in graph.modules if name in entries or name.startswith(ROOMS)]
    reached = set()
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += graph.find_modules_directly_imported_by(name)
        waiting += [name.rpartition(".")[0]] * ("." in name)
    return graph.modules - reached


# in processes of their own: the deepest frames of lmtools from `main` to a function of ours or to a
# product of matrices, and the modules that were imported
TRACE = """\
import json, sys
from lmtools.cli import main
argv, end = sys.argv[2:], sys.argv[1]
deepest = []

def note(frame):
    names = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] == "lmtools":
            owner = frame.f_locals.get("self")
            holder = f"{type(owner).__name__}." if owner is not None else ""
            names.append(f"{module[8:]}: {holder}{frame.f_code.co_name}")
        frame = frame.f_back
    if len(names) >= len(deepest):
        deepest[:] = names[::-1]

def look(frame, event, argument):
    if event == "call" and frame.f_code.co_name == end:
        note(frame)

if end == "products":
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(1)
    for name in ("linear", "scaled_dot_product_attention"):
        def product(*args, inner=getattr(F, name), **options):
            note(sys._getframe(1))
            return inner(*args, **options)
        setattr(F, name, product)
else:
    sys.setprofile(look)
main(argv)
sys.setprofile(None)
modules = [name for name in sys.modules if name.partition(".")[0] == "lmtools"]
print(json.dumps([deepest, len(modules)]))
"""
MAKE = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from toys import save_rough, settings
from lmtools.text.subword import load_subword
save_rough(Path("tta"), settings("tta"), load_subword("sw"))
"""
TEXT = "the king came to the city\n" * 9
LIST = {
    "utt": "u",
    "hyps": [{"text": "the city"}, {"text": "the king came"}],
    "ref": "the king came",
}
SCORE = "score --nbest n.jsonl --cache none --device cpu"
# what is traced: the function in which it ends ("products": torch's products of matrices), the verb
TRACED = {
    "score by an n-gram": ("query", f"{SCORE} --lm lm --out lm.scores"),
    "score by a T-TA": ("products", f"{SCORE} --lm tta --out tta.scores"),
    "tune": ("sweep", "tune --nbest n.jsonl --scores lm=lm.scores --out w.json"),
}


@functools.cache
def trace(tree: Path = ROOT) -> dict[str, tuple[list[str], int]]:
    """By command TRACED: its frames to the end, and the number of modules imported."""
    found = {}
    with tempfile.TemporaryDirectory() as home:
        Path(home, "t").write_text(TEXT)
        Path(home, "n.jsonl").write_text(json.dumps(LIST) + "\n")
        python = {"env": {**os.environ, "PYTHONPATH": str(tree)}, "cwd": home, "check": True}
        ngram = ["-m", "lmtools", "ngram", "--text", "t", "--order", "2", "--out", "lm"]
        words = ["-m", "lmtools", "subword", "--text", "t", "--type", "word", "--out", "sw"]
        for command in (ngram, words, ["-c", MAKE, str(Path(__file__).parent)]):
            subprocess.run([sys.executable, *command], capture_output=True, **python)
        for name, (end, command) in TRACED.items():
            argv = [sys.executable, "-c", TRACE, end, *command.split()]
            printed = subprocess.run(argv, capture_output=True, **python).stdout
            found[name] = tuple(json.loads(printed.splitlines()[-1]))
    return found


def list_traces(tree: Path = ROOT) -> Iterator[str]:
    """The lines of ARCHITECTURE.md that show what is traced."""
    for name, (frames, _) in trace(tree).items():
        yield from ("", f"{name}: {len(frames)} frames", "", "```")
        for frame in frames:
            module, _, function = frame.partition(": ")
            yield f"{module:24}{function}"
        yield "```"


def percentile(values: list[int], share: float) -> int:
    """The value below which that share of sorted `values` lies."""
    return values[min(len(values) - 1, int(len(values) * share))]


def count(tree: Path = ROOT) -> dict[str, object]:
    """Every figure by its name."""
    sources, tests = read_sources(tree), read_sources(tree, "tests")
    flags = count_flags(sources)
    classes = {name: at for name, at in find_classes(sources).items() if len(at) > 1}
    widths = sorted(len(line) for text in sources.values() for line in text.splitlines())
    functions = measure_functions(sources)
    wide = count_wide(sources)
    files = sorted(text.count("\n") for text in sources.values())
    sys.path.insert(0, str(tree))
    graph = grimp.build_graph("lmtools", cache_dir=None, exclude_type_checking_imports=True)
    sys.path.remove(str(tree))
    traces = trace(tree)
    of_ngram, imported = traces["score by an n-gram"]
    return {
        "lines of lmtools": sum(files),
        "statements of lmtools": sum(
            isinstance(node, ast.stmt)
            for text in sources.values()
            for node in ast.walk(ast.parse(text))
        ),
        "rooms": len({path.parts[1] for path in sources if len(path.parts) > 2}),
        "lines of tests": sum(text.count("\n") for text in tests.values()),
        "share of test lines beside imports of internals": round(
            sum(text.count("\n") for text in tests.values() if knows_internals(text))
            / sum(text.count("\n") for text in tests.values()),
            3,
        ),
        "files of lmtools": len(files),
        "files under 40 lines": sum(
            text.count("\n") < 40
            for path, text in sources.items()
            if path.name not in ("__init__.py", "__main__.py")
        ),
        "frames of score by an n-gram": len(of_ngram),
        "frames of score by a T-TA": len(traces["score by a T-TA"][0]),
        "modules that score by an n-gram imports": imported,
        "knobs": len({*flags}.union(*map(list_declared, sources.values()))),
        "lines a file (median, p90, max)": [percentile(files, share) for share in (0.5, 0.9, 1)],
        "lines a function (median, p90, max)": [
            percentile(functions, share) for share in (0.5, 0.9, 1)
        ],
        "functions over 40 lines": sum(lines > 40 for lines in functions),
        "longest function": functions[-1],
        "functions of eight parameters": wide[0],
        "calls of five positional arguments": wide[1],
        "flags": len(flags),
        "columns a line (p90)": percentile(widths, 0.9),
        "flags, declarations": [len(flags), flags.total()],
        "declarations a flag": round(flags.total() / len(flags), 3),
        "classes of one name": classes,
        "cycles": list(find_cycles(graph)),
        "reached by no verb": sorted(find_unreached(graph, find_named(sources))),
        **{f"{name} (lines, options)": n for name, n in count_scripts(tree).items()},
    }


if __name__ == "__main__":
    for name, value in count(*map(Path, sys.argv[1:])).items():
        print(f"{name}: {value}")
    print(*list_traces(*map(Path, sys.argv[1:])), sep="\n")
