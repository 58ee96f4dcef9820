"""Tables, figures and one self-contained HTML page of an experiment; torch-free."""

from lmtools.report.write import write_report

__all__ = ["write_report"]
