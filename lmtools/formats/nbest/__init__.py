"""N-best list formats of lines, columns and directories, a module each, and 1-best formats.

A module has ABOUT, `recognises(path, first line)`, `read(path)` and `write(nbests, path)`. Formats
in JSON are in `lmtools.formats.json_lists`.
"""
