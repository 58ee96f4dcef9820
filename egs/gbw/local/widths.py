"""Blocks of gated convolutions in the notation of the GCNN paper's Table 1, and the widths that
give them as many weights as others.
"""

import re

from lmtools.errors import UserError

# convolutions of a gate
BRANCHES = {"glu": 2, "gtu": 2, "bilinear": 2, "relu": 1, "tanh": 1, "linear": 1}
BLOCK = re.compile(r"\s*\[([^]]*)]\s*(?:x\s*(\d+))?\s*")
LAYER = re.compile(r"\s*(\d+)\s*,\s*(\d+)\s*")

Blocks = list[list[tuple[int, int]]]  # residual blocks of layers (kernel, outputs)


def parsed(blocks) -> Blocks:
    """Residual blocks from the notation of the GCNN paper's Table 1: "[4, 256]", "[1, 128; 5, 128;
    1, 512] x 3".
    """
    result: Blocks = []
    for text in blocks:
        block = BLOCK.fullmatch(text)
        layers = [LAYER.fullmatch(layer) for layer in block[1].split(";")] if block else [None]
        if not all(layers):
            raise UserError(
                f"arch.blocks: {text!r} is not in the form [kernel, outputs; ...] x repeats;"
                " mend it"
            )
        result += [[(int(layer[1]), int(layer[2])) for layer in layers]] * int(block[2] or 1)
    return result


def written(blocks: Blocks) -> list[str]:
    """The notation of blocks, equal neighbours together."""
    result: list[list] = []
    for block in blocks:
        text = "; ".join(f"{kernel}, {outputs}" for kernel, outputs in block)
        if result and result[-1][0] == text:
            result[-1][1] += 1
        else:
            result.append([text, 1])
    return [f"[{text}]" + (f" x {times}" if times > 1 else "") for text, times in result]


def weights(inputs: int, blocks: Blocks, gate: str) -> int:
    """The weights of convolutions under a gate, and of projections around blocks that change the
    width.
    """
    if gate not in BRANCHES:
        raise UserError(f"arch.gate: {gate!r} is unknown; known: {', '.join(BRANCHES)}")
    total, branches = 0, BRANCHES[gate]
    for block in blocks:
        before = inputs
        for kernel, outputs in block:
            total += kernel * inputs * outputs * branches
            inputs = outputs
        total += before * inputs if before != inputs else 0
    return total


def context(blocks: Blocks) -> int:
    """The receptive field in tokens."""
    return 1 + sum(kernel - 1 for block in blocks for kernel, _ in block)


def scaled(blocks: Blocks, factor: float, last: int) -> Blocks:
    """Blocks with all widths times `factor`, but the last width `last`: what the output layer sees
    stays the same.
    """
    wide = [
        [(kernel, max(1, round(outputs * factor))) for kernel, outputs in block] for block in blocks
    ]
    wide[-1][-1] = (wide[-1][-1][0], last)
    return wide


def matched(arch: dict, base: dict, blocks: Blocks) -> Blocks:
    """`blocks` with the widths that give, under the gate of `arch`, the most weights that the
    architecture `base` has too.
    """
    model, gate = parsed(base["blocks"]), arch.get("gate", "glu")
    goal, last = weights(base["dim"], model, base.get("gate", "glu")), model[-1][-1][1]
    if blocks == model and weights(arch["dim"], blocks, gate) == goal:
        return blocks
    low, high = 1 / 64, 64.0
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        fits = weights(arch["dim"], scaled(blocks, middle, last), gate) <= goal
        low, high = (middle, high) if fits else (low, middle)
    return scaled(blocks, low, last)
