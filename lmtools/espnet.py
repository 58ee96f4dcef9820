"""Former name of lmtools.bridges.espnet, for one version more."""

import sys

from lmtools.bridges import espnet

if __name__ == "__main__":
    from lmtools.bridges.espnet.__main__ import main

    sys.exit(main(sys.argv[1:]))
sys.modules[__name__] = espnet
