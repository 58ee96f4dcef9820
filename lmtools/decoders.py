"""Former name of lmtools.bridges.decoders, for one version more."""

import sys

from lmtools.bridges import decoders

sys.modules[__name__] = decoders
