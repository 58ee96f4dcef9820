"""What a user's mistake raises, and how it is said; what a package that is missing needs.

Packages beyond the base install come with extras of ours.
"""

import contextlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

LONGEST = 500  # characters of a message


class UserError(Exception):
    """The user's input is wrong; the message is one line `path:line: cause; remedy`.

    The command line prints it on standard error and exits with status 1; nothing is half-written.
    """


@contextlib.contextmanager
def exit_with_message() -> Iterator[None]:
    """Tell a UserError of the block of a script in one line, with exit status 1."""
    try:
        yield
    except UserError as error:
        sys.exit(one_line(error))


# a command, which stays as it is, or an option with the value that a message gives it
SHELL = re.compile(
    r"lmtools [a-z]+ [^;()]*|--([a-z][a-z-]+)(?: ([A-Z][\w.,=]*|\d\S*|\w+=[-\w.]+))?"
)
KEYWORDS = {"scores": "columns", "nbest": "lists"}  # of options that have other names in Python


@contextlib.contextmanager
def in_keywords() -> Iterator[None]:
    """Have a UserError of the block name keyword arguments in place of the shell's options."""
    try:
        yield
    except UserError as error:
        error.args = (speak_python(str(error)), *error.args[1:])
        raise


def speak_python(text: str) -> str:
    """Return a message with keyword arguments in place of the shell's options."""
    return SHELL.sub(name_keyword, text)


def name_keyword(match: re.Match) -> str:
    """Return the keyword argument that stands for an option and its value; a command as it is."""
    option, value = match.groups()
    if not option or option == "set":
        return value or match[0]
    name = KEYWORDS.get(option, option.replace("-", "_"))
    if value and option in ("fix", "scores") and "=" in value:
        key, _, value = value.partition("=")
        value = f"{{{key!r}: {value}}}"
    return f"{name}={value}" if value else name


def out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory of the machine or of a device did not suffice."""
    of_device = type(error).__name__ == "OutOfMemoryError"  # torch's
    return of_device or isinstance(error, MemoryError) or "allocate memory" in str(error)


def one_line(error: Exception) -> str:
    """Return the message in one line of at most LONGEST characters, without its middle if it is
    longer; what would not be seen is escaped.
    """
    return cut(escape(" ".join(cut(str(error)).splitlines())))


def escape(text: str) -> str:
    """Return `text` with what would not be seen, or would move a terminal's cursor, escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut(text: str) -> str:
    """Return `text`, or its beginning, which says where, and its end, which says what to do."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - len(" ... ")) // 2
    return f"{text[:half]} ... {text[-half:]}"


# module -> extra of pyproject.toml
EXTRAS = {
    "torch": "neural",
    "safetensors": "neural",
    "kenlm": "ngram",
    "transformers": "hf",
    "tokenizers": "hf",
    "httpx": "llm",
    "llama_cpp": "gguf",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "sacremoses": "mt",
    "soundfile": "asr",
    "av": "asr",
    "tensorboard": "tensorboard",
    "starlette": "serve",
    "uvicorn": "serve",
    "wyoming": "serve",
    "h11": "serve",
    "faster_whisper": "asr",
    "vosk": "asr",
}


def install_extra(*extras: str) -> str:
    """Return the command that installs extras of this very lmtools into this very Python: from its
    checkout, or from where pip says that it took it.
    """
    home, wanted, how = Path(__file__).parents[2], f"[{','.join(extras)}]", "install"
    if (home / "pyproject.toml").exists():
        what, how = f"{'.' if home == Path.cwd() else home}{wanted}", "install -e"
    else:
        what = find_origin(wanted)
    near = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
    pip = "pip" if near else f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} {how} {shlex.quote(what)}"


def find_origin(wanted: str) -> str:
    """Return what pip installs with the extras `wanted`, `[a,b]`: a path or address that it noted
    (direct_url.json), or the name, which it looks up in the index that it was taken from.
    """
    try:
        noted = json.loads(metadata.distribution("lmtools").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        noted = {}
    url, vcs = noted.get("url", ""), noted.get("vcs_info")
    place = Path(unquote(urlsplit(url).path))
    if vcs:
        return f"lmtools{wanted} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    if url.startswith("file:") and place.exists():
        return f"{place}{wanted}"
    return f"lmtools{wanted}" + f" @ {url}" * url.startswith("http")


def explain_missing(error: ImportError, purpose: str = "", otherwise: str = "") -> UserError:
    """Return what the user does about a module that cannot be imported: the extra to install, or
    what to do `otherwise`. `purpose` says what needs it. Whatever no extra brings is a fault of
    ours, and is raised again.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    remedy = install_extra(EXTRAS[module])
    remedy += f", or {otherwise}" if otherwise else ""
    where = f"{purpose} needs" if purpose else "this needs"
    return UserError(f"{where} the package {module}; {remedy}")
