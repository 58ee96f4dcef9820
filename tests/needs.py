"""Marks of tests that need a door (lmtools/base/doors.py), which a copy of lmtools may lack."""

import pytest

from lmtools.base.doors import find_doors


def needs(door: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(door not in find_doors(), reason=f"no {door}/")
