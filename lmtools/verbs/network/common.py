"""What the actions on networks share."""

from collections.abc import Iterable

from lmtools.base.errors import UserError
from lmtools.formats.lattices import LATTICES
from lmtools.formats.networks import NETWORKS
from lmtools.formats.registry import find_format
from lmtools.lattice.networks import as_lattice
from lmtools.types import ConfusionNetwork

FORMATS = f"{', '.join(NETWORKS)}, or a format of lattices ({', '.join(LATTICES)})"


def write_networks(networks: Iterable[ConfusionNetwork], path, spec: str) -> int:
    """Write networks one by one, in a format of networks or as lattices; return how many."""
    name, written = spec.partition(":")[0], [0]
    if name not in NETWORKS and name not in LATTICES:
        raise UserError(f"--to {spec}: no such format; give {FORMATS}")

    def counted():
        for network in networks:
            written[0] += 1
            yield network

    if name in NETWORKS:
        find_format(spec, NETWORKS).write(counted(), path)
    else:
        find_format(spec, LATTICES).write(map(as_lattice, counted()), path)
    return written[0]
