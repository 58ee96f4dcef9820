"""Texts that do not fit a model's positions: whole, they are read in overlapping windows; word by
word, their older half is forgotten.
"""


def stride(longest: int) -> int:
    """Return the number of tokens between the beginnings of two windows."""
    return max(1, longest // 2)


def cut_windows(length: int, longest: int) -> list[tuple[int, int, int, int]]:
    """Cover `length` tokens by windows of at most `longest`: (begin, end, first, last) with the
    scores first:last of a window's end - begin + 1 to be used; together they are those of the
    tokens and the end of sentence, once each, in order, each where it has most context.
    """
    if length <= longest:
        return [(0, length, 0, length + 1)]
    begins = [*range(0, length - longest, stride(longest)), length - longest]
    cuts = [0, *(begin + longest // 4 for begin in begins[1:]), length + 1]
    return [
        (begin, begin + longest, first - begin, last - begin)
        for begin, first, last in zip(begins, cuts, cuts[1:], strict=False)
    ]


def count_rows(length: int, longest: int, boundary: int, masked: bool) -> int:
    """Return model rows of a sentence with `boundary` tokens around each window; `masked`: it is
    read once for each of its tokens.
    """
    width = min(length, longest) + boundary
    return len(cut_windows(length, longest)) * (width * width if masked else width)


def tokens_kept(longest: int) -> int:
    """Return how many last tokens stay of a prefix whose `longest` fill a model's positions."""
    return longest - stride(longest)
