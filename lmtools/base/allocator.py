"""What the C library does with memory that is given back."""

import contextlib
import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of mallopt, see malloc.h of the GNU C library
KEPT = 1 << 28  # bytes


def keep_freed_memory(kept: int = KEPT) -> None:
    """Keep `kept` bytes that were given back for the next array, as far as the C library can: else
    the kernel clears the pages of each large one anew, a tenth of the time of sorting.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, kept)
        mallopt(TRIM_THRESHOLD, kept)
