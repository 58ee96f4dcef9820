"""Blocks of gated convolutions in the notation of the GCNN paper's Table 1, and the widths that
give them as many weights as others.
"""

from lmtools.base.errors import UserError
from lmtools.models.convolution import GATES
from lmtools.models.gcnn import Shape, read_blocks

Blocks = list[Shape]


def read(arch: dict) -> Blocks:
    """Return the residual blocks of settings, in the notation of the GCNN paper's Table 1."""
    return [shape for text in arch["blocks"] for shape in read_blocks(text)]


def written(blocks: Blocks) -> list[str]:
    """Return the notation of blocks, equal neighbours together."""
    result: list[list] = []
    for block in blocks:
        text = "; ".join(f"{kernel}, {outputs}" for kernel, outputs in block)
        if result and result[-1][0] == text:
            result[-1][1] += 1
        else:
            result.append([text, 1])
    return [f"[{text}]" + (f" x {times}" if times > 1 else "") for text, times in result]


def weights(inputs: int, blocks: Blocks, gate: str) -> int:
    """Return the weights of convolutions under a gate, and of projections around blocks that change
    the width.
    """
    if gate not in GATES:
        raise UserError(f"arch.gate: {gate!r} is unknown; known: {', '.join(GATES)}")
    total, branches = 0, GATES[gate].branches
    for block in blocks:
        before = inputs
        for kernel, outputs in block:
            total += kernel * inputs * outputs * branches
            inputs = outputs
        total += before * inputs if before != inputs else 0
    return total


def scaled(blocks: Blocks, factor: float, last: int) -> Blocks:
    """Return blocks with all widths times `factor`, but the last width `last`: what the output
    layer sees stays the same.
    """
    wide = [
        tuple((kernel, max(1, round(outputs * factor))) for kernel, outputs in block)
        for block in blocks
    ]
    return [*wide[:-1], (*wide[-1][:-1], (wide[-1][-1][0], last))]


def matched(arch: dict, base: dict, blocks: Blocks) -> Blocks:
    """Return `blocks` with the widths that give, under the gate of `arch`, the most weights that
    the architecture `base` has too.
    """
    model, gate = read(base), arch.get("gate", "glu")
    goal, last = weights(base["dim"], model, base.get("gate", "glu")), model[-1][-1][1]
    if blocks == model and weights(arch["dim"], blocks, gate) == goal:
        return blocks
    low, high = 1 / 64, 64.0
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        fits = weights(arch["dim"], scaled(blocks, middle, last), gate) <= goal
        low, high = (middle, high) if fits else (low, middle)
    return scaled(blocks, low, last)
