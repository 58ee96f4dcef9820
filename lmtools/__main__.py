"""`python -m lmtools VERB` is the same as `lmtools VERB`."""

from lmtools.cli import main

raise SystemExit(main())
