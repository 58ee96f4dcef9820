"""The Python interface: what `lmtools.load`, `lmtools.tune` and the other names of the package are.

The functions are thin: the verbs of the command line and they call the same code below.
"""
