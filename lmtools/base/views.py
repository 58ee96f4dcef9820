"""Mappings that cannot be written to."""

import copyreg
from collections.abc import Mapping
from types import MappingProxyType

EMPTY: Mapping = MappingProxyType({})
PLAIN = frozenset({dict, MappingProxyType})  # mappings that are not looked into


def read_only(values: Mapping) -> Mapping:
    """Return a view of `values` that cannot be written to."""
    return MappingProxyType(values)


# values with EMPTY in them go to other processes
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))
