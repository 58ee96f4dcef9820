"""How models compute: device, precision, batches, processes, cache. Imports no torch."""

from dataclasses import dataclass

from lmtools.base.options import check_options, option

ENGINES = ("auto", "torch", "prepared", "onnx")


@dataclass(frozen=True)
class Computing:
    """Options of the computation, the same for every model; results depend on `precision`, their
    last bits on `device`, `engine` and `rows` too (None: what suits the device; a batch that does
    not fit into memory is halved).
    """

    device: str = option("auto", "cpu, cuda, cuda:1 ...; auto: the GPU where there is one")
    precision: str = option(
        "float32",
        "of matrix products: float32, bfloat16, auto; to score and embed on a CPU also int8",
        rare=True,
    )
    engine: str = option(
        "auto",
        "torch; prepared: a CPU multiplies with weights packed once; onnx: ONNX Runtime scores text"
        " by text; auto: prepared where no bit changes, in bfloat16, and in int8",
        choices=ENGINES,
        rare=True,
    )
    cache: str = option(
        "default",
        "keeps what was computed between runs; or none (default: ~/.cache/lmtools)",
        metavar="DIR",
        rare=True,
        path=True,
    )
    rows: int | None = option(
        None,
        "model rows a batch (default: 256 on a CPU, 4096 on a GPU)",
        metavar="N",
        least=1,
        rare=True,
    )
    nj: int = option(1, "processes", metavar="N", least=1)

    def __post_init__(self):
        check_options(self)


USUAL = Computing()
