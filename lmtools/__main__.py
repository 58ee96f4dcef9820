"""`python -m lmtools VERB` is the same as `lmtools VERB`, and what torchrun runs."""

import os
import signal
import sys


def run() -> int:
    """Run `main`, whose imports an interrupt ends without a traceback."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:  # not ignored, as behind nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lmtools.cli import main

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    status = run()
    # a process of torchrun ends without Python's own end, in which a thread that gloo has left may
    # abort it, after its work is done
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)
