"""Which files belong to the package; what it is called and needs stands in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["lmtools", "lmtools.*"]),
    package_data={"lmtools": ["py.typed"], "lmtools.report": ["*.yaml", "web/*"]},
)
