"""The version of lmtools, which signatures, artifacts and setup.py carry."""

__version__ = "1.0.0.dev0"
