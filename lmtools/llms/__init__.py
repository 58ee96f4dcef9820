"""Large language models: behind a server that answers as OpenAI's completions do, and in GGUF
files.
"""

SERVER = (
    "lmtools.llms.servers:load_server", "lmtools.llms.options:ServerOptions", "httpx"
)  # fmt: skip
LMS = {
    "http://": SERVER,
    "https://": SERVER,
    "gguf:": ("lmtools.llms.gguf:load_gguf", "lmtools.llms.options:GgufOptions", "llama_cpp"),
}
