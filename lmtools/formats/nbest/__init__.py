"""N-best list formats of lines, columns and directories, a module each, and 1-best formats.

A module has SUMMARY, `recognises(path, first line)`, `read(path)` and `write(nbests, path)`; its
OPTIONS, if any, explain what these take by name. Formats in JSON are in `json_lists`.
"""
