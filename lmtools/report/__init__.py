"""Tables, figures and one self-contained HTML page of an experiment; torch-free."""

from lmtools.report.write import PAPERS, REPORTS, add_part, write_report

__all__ = ["PAPERS", "REPORTS", "add_part", "write_report"]
