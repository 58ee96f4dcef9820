"""pocketsphinx's own lattices (`ps_lattice_write`): words on nodes, integer scores on edges.

Nodes are `id word start-frame first-end-frame last-end-frame ; alternative`; an edge's score
belongs to the node that it leaves. Scores are integers in the log base that the header states
(`-logbase`, 1.0001 where it does not); they become `am`. The format is read, not written.
<sil> is no word, and neither are <s>, </s>, [NOISE], [SPEECH] and ++...++ (extra `symbol`);
`word(2)` is `word` with the extra `variant`. Times are start frames / 100. The last node's word has
its score on no edge.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import refuse_write
from lmtools.formats.lattices import common
from lmtools.formats.lattices.common import parse_number, parse_real
from lmtools.types import Arc, Lattice

SUMMARY = "pocketsphinx's own .lat: a file, or a directory of them"
SUFFIXES = (".lat",)
NULL = "<sil>"
FILLER = re.compile(rf"{common.FILLER.pattern}|\[[^\]]+\]")
VARIANT = re.compile(r"(.+)\((\d+)\)", re.ASCII)
FRAMES = 100  # a second
BASE = "1.0001"
KEYS = {"Frames", "Nodes", "Initial", "Final", "BestSegAscr", "Edges"}
EXTRAS = ("node.first_end", "node.last_end", "node.alternative")

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line (of the first file, in a directory) is pocketsphinx's."""
    return re.match(r"# getcwd:|Frames \d", common.opening(path, SUFFIXES, first)) is not None


def read(path) -> Iterator[Lattice]:
    """Read the lattice in the file `path`, or those of a directory, named by the files."""
    for utt, file in common.files(path, SUFFIXES):
        yield read_lattice(utt, file)


def read_lattice(utt: str, path) -> Lattice:
    header, rows = {"logbase": BASE}, {"Nodes": [], "Edges": []}
    section = ""
    for number, line in read_lines(path):
        fields = line.split()
        if line.startswith("#"):
            header |= (
                {"logbase": fields[2]} if fields[1:2] == ["-logbase"] and len(fields) > 2 else {}
            )
        elif (
            fields
            and fields[0] in KEYS
            and not (section == "Nodes" and len(fields) > 5 and fields[0].isdigit())
        ):
            section = fields[0]
            header[section] = fields[1] if len(fields) > 1 else ""
        elif fields and fields[0] != "End":
            if section not in rows:
                raise UserError(
                    f"{path}:{number}: {line[:40]!a} belongs neither to Nodes nor to Edges; give a"
                    " lattice of pocketsphinx"
                )
            rows[section].append((f"{path}:{number}", fields))
    return build_lattice(utt, path, header, rows)


def build_lattice(utt: str, path, header: dict[str, str], rows: dict[str, list]) -> Lattice:
    for name in ("Nodes", "Initial", "Final", "Edges"):
        if name not in header:
            raise UserError(
                f"{path}: no line {name!r}; the file is cut off or no lattice of pocketsphinx"
            )
    if parse_number(header["Nodes"], path, "Nodes") != len(rows["Nodes"]):
        raise UserError(
            f"{path}: Nodes {header['Nodes']}, but there are {len(rows['Nodes'])}; the file is cut"
            " off or damaged"
        )
    on_nodes, times = [], []
    for index, (where, fields) in enumerate(rows["Nodes"]):
        if len(fields) not in (5, 7) or fields[0] != str(index):
            raise UserError(
                f"{where}: {' '.join(fields)[:40]!a}; expected `{index} word start first-end"
                " last-end ; alternative`"
            )
        on_nodes.append(parse_node(fields[1], [*fields[3:5], *fields[6:]]))
        times.append(parse_number(fields[2], where, "the start frame") / FRAMES)
    base = parse_real(header["logbase"], path, "the log base")
    if not base > 0 or base == 1 or math.isinf(base):
        raise UserError(f"{path}: -logbase {header['logbase']}; expected a base of logarithms")
    edges = [
        parse_edge(fields, where, len(on_nodes), math.log(base)) for where, fields in rows["Edges"]
    ]
    start, end = (parse_index(header[name], len(on_nodes), path) for name in ("Initial", "Final"))
    graph = common.NodeGraph(on_nodes, edges, start, end, times=times)
    return common.build_lattice(utt, graph, "source")


def parse_node(symbol: str, values: list[str]) -> common.Node:
    named = common.node_of_symbol(symbol, NULL, FILLER)
    extra = {**named.extra, **dict(zip(EXTRAS, values, strict=False))}
    match = VARIANT.fullmatch(symbol) if named.word else None
    if match:
        return common.Node(match[1], {**extra, "variant": match[2]})
    return common.Node(named.word, extra)


def parse_index(text: str, count: int, where: str) -> int:
    """Return the node that `text` names."""
    index = parse_number(text, where, "a node")
    if index >= count:
        raise UserError(f"{where}: node {index}, but there are {count}; number them from 0")
    return index


def parse_edge(fields: list[str], where: str, count: int, unit: float) -> Arc:
    """Return the arc of an edge, its score in units of `unit`."""
    if len(fields) != 3:
        raise UserError(f"{where}: {len(fields)} fields; expected `from to score`")
    return Arc(
        parse_index(fields[0], count, where),
        parse_index(fields[1], count, where),
        None,
        {"am": parse_real(fields[2], where, "a score") * unit},
    )
