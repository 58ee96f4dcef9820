"""`python -m lmtools VERB` is the same as `lmtools VERB`, and what torchrun runs.

A process of torchrun ends without Python's own end, in which a thread that gloo has left may abort
it, after its work is done.
"""

import os
import sys

from lmtools.cli import main

status = main()
if int(os.environ.get("WORLD_SIZE", 1)) > 1:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
raise SystemExit(status)
