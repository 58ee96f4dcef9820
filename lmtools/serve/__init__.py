"""Language models and weights that a process keeps, for programs that send it lists as they come:
over HTTP (`server`), or line by line (`lines`). Both ask a `Chooser`.
"""
