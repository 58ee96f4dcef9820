"""What only the models of this door are told, behind a comma in the value of --lm."""

from dataclasses import dataclass

from lmtools.base.options import check_options, option


@dataclass(frozen=True)
class ServerOptions:
    """How a server is asked, as in `http://HOST:PORT/v1,model=NAME,requests=16`."""

    model: str | None = option(None, "name of the model (default: the only one that it lists)")
    end: str | None = option(
        None,
        "text that ends a sentence, such as </s>, or none (default: the end of text of the model,"
        " which is found by asking)",
    )
    requests: int = option(8, "texts that are asked at a time", least=1)
    timeout: float = option(120.0, "seconds that an answer may take", least=0.1)
    max_requests: int | None = option(None, "the most requests of a run", least=1)
    max_tokens: int | None = option(None, "the most tokens of all requests of a run", least=1)

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True)
class GgufOptions:
    """How a GGUF file is computed, as in `gguf:FILE,threads=2`."""

    threads: int | None = option(None, "threads (default: one a core)", least=1)
    positions: int = option(2048, "the most tokens of a hypothesis", least=8)

    def __post_init__(self):
        check_options(self)
