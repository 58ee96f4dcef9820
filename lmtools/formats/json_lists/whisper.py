"""One small JSON for what Whisper, CTranslate2 and Hugging Face's `generate` give in Python; the
lines that dump it are in docs/whisper.md.

    [{"utt": "a1", "ref": "blue finch", "hypotheses": [{"text": "blue fins", "score": -0.31,
      "tokens": [428, 3962, 1274]}, ...]}, ...]

Hypotheses stand best first; `ref` may be missing. A hypothesis has its `text` and at most one of
    sum_logprob  the natural-log probability of the whole output, taken as it is
    avg_logprob  that sum divided by the number of `tokens` + 1 (the end, not listed)
    score        the sum divided by the number of `tokens` to the power `length_penalty` (a number
                 beside it, 1 if missing); Hugging Face counts the end among the tokens
`tokens` is the list of tokens or their number. With it the division is undone and the component
`am` is the sum; without it `am` is the average as it stands, which compares hypotheses of different
length by another rule. What else there is is kept as extra. The format is read, not written.

Read alone is what the command lines of openai-whisper (`--output_format json`),
whisper-ctranslate2, whisperX and whisper.cpp (`--output-json`) leave, OpenAI's `verbose_json`, what
Hugging Face's pipeline returns (`chunks`) and lists of faster-whisper's segments, a file UTT.json
each: a directory of them, or one. Each is a list of one hypothesis without score, since the
averages in it are of windows, not of texts.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.grammar import clip_value
from lmtools.base.log import say
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import Entry, expect, member, parse_keyed, unique
from lmtools.formats.registry import read_beginning, read_first_line
from lmtools.types import Hypothesis, NBest

SCORES = ("sum_logprob", "avg_logprob", "score")
OUTPUT = "output"  # the key under which `read_entries` yields what a command line left
NO_SCORE = "no score"

SPACELESS = ("zh", "ja", "th", "lo", "my", "yue")  # languages whose segments no space separates

is_dump = json_io.recognise("[", '"utt"', '"hypotheses"')
OTHERS = r'\A(?s:(?!.*"(utt|utts|results|transcripts?|beams|alternatives|hypotheses|input)"\s*:))'
are_outputs = json_io.recognise_results(
    r'"(segments|transcription|chunks)"\s*:\s*(\[|null)|"words"\s*:\s*\[\s*\{[^{}]*"word"',
    r'"(text|word_segments)"\s*:',
    OTHERS,
)
are_segments = json_io.recognise_results(
    r'"(start|timestamp)"\s*:', r'"text"\s*:', OTHERS, opening="["
)


def recognises(path: Path, first: str) -> bool:
    """Return whether a file is a dump, or it or a directory's first an output of Whisper's."""
    return is_dump(path, first) or are_outputs(path, first) or are_segments(path, first)


def read_entries(path) -> Iterator[Entry]:
    """Yield the lists of a dump, or outputs under OUTPUT; name those with cut characters."""
    if Path(path).is_dir() or holds_output(Path(path)):
        cut: list[Path] = []
        for utt, tree, where in json_io.read_files(path, lambda file: load_output(file, cut)):
            yield utt, {OUTPUT: tree}, where
        if cut:
            more = f", and {len(cut) - 1} other file{'s' * (len(cut) > 2)} of {path}"
            more = more if len(cut) > 1 else ""
            remedy = "halves that do not meet are read as \ufffd"
            say(f"{cut[0]}: cuts characters in two{more}; {remedy}")
        return
    lists = json_io.read_list(path)
    entries = ((member(tree, "utt", str, where), tree, where) for tree, where in lists)
    for utt, tree, _ in unique(entries):
        yield utt, tree, f"{path}: utterance {utt!r}"


def holds_output(path: Path) -> bool:
    """Return whether a file holds what a command line left, not a dump."""
    if not path.is_file():
        return False
    beginning = read_beginning(path).decode("utf-8-sig", "replace")
    return beginning.lstrip().startswith("{") or are_segments(path, read_first_line(path))


def load_output(path: Path, cut: list[Path]):
    """Load an output. whisper.cpp ends tokens and lines inside a character: the halves are joined
    again in its `text`, and are U+FFFD elsewhere; its path is added to `cut`.
    """
    tree = json_io.load(path, "surrogateescape")
    if not isinstance(tree, dict) or "transcription" not in tree:
        tree = json_io.load(path) if is_cut(tree) else tree
        if isinstance(tree, list):  # segments, or parts of a pipeline's output
            timed = any(isinstance(part, dict) and "timestamp" in part for part in tree)
            tree = {"chunks" if timed else "segments": tree}
        return tree
    text = join_texts(tree["transcription"], "", str(path))
    if not is_cut(tree):
        return tree | {"text": text}
    cut.append(path)
    spelled = json.dumps(tree | {"text": text}, ensure_ascii=False)
    return json.loads(spelled.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def is_cut(tree) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def parse_list(utt: str, tree: Mapping, where: str) -> NBest:
    """Return the list of an entry; its scores are called as their kinds are (`find_kind`)."""
    if tree.keys() == {OUTPUT}:
        return NBest(utt, (parse_output(tree[OUTPUT], where),))
    return parse_keyed(utt, tree, where, hyps="hypotheses", parse=parse_hypothesis)


def parse_output(tree: Mapping, where: str) -> Hypothesis:
    """Return what Whisper's command line writes of a recording: its text or that of its parts."""
    names = ("segments", "chunks")
    parts = next((tree[name] for name in names if isinstance(tree.get(name), list)), None)
    if "text" in tree or parts is None:
        text = member(tree, "text", str, where)
    else:
        between = "" if tree.get("language") in SPACELESS else " "
        text = expect(join_texts(parts, between, where), str, where, "the text")
    return Hypothesis(" ".join(text.split()), {}, json_io.extras(tree, ("text",), where))


def join_texts(parts, between: str, where: str) -> str:
    """Return the texts of the parts of an output as one, which may hold halves of characters."""
    texts = []
    for part in expect(parts, list, where, "'transcription'"):
        text = expect(part, dict, where, "a part").get("text")
        texts.append(text if isinstance(text, str) else member(part, "text", str, where))
    return between.join(texts)


def parse_hypothesis(tree, where: str) -> Hypothesis:
    kinds = [kind for kind in SCORES if kind in expect(tree, dict, where, "it")]
    if len(kinds) > 1:
        raise UserError(f"{where}: has {' and '.join(kinds)}; give one of them")
    text = member(tree, "text", str, where)
    extra = json_io.extras(tree, ("text", "length_penalty", *SCORES), where)
    if not kinds:
        return Hypothesis(text, {}, extra)
    (kind,) = kinds
    value = member(tree, kind, float, where)
    if "tokens" in tree:
        count = count_tokens(tree["tokens"], where)
        penalty = expect(tree.get("length_penalty", 1), float, where, "length_penalty")
        if kind == "score":
            value *= max(count, 1) ** max(-64.0, min(penalty, 64.0))
        elif kind == "avg_logprob":
            value *= count + 1.0
    if not math.isfinite(value):
        raise UserError(f"{where}: its {kind} times its tokens is {value}; correct them")
    divided = "tokens" in tree and kind != SCORES[0]
    return Hypothesis(text, {f"{kind} and tokens" if divided else kind: value}, extra)


def count_tokens(tokens, where: str) -> int:
    if (
        isinstance(tokens, bool)
        or not isinstance(tokens, list | int)
        or (isinstance(tokens, int) and not 0 <= tokens < 1 << 31)
    ):
        raise UserError(f"{where}: 'tokens' is {clip_value(tokens)}; expected a list or a number")
    return len(tokens) if isinstance(tokens, list) else tokens


def name_scores(nbests: Iterable[NBest], path) -> Iterator[NBest]:
    """Yield the lists with their scores as `am`; UserError where these are of different kinds."""
    first = None
    for nbest in nbests:
        for rank, hyp in enumerate(nbest.hyps, 1):
            kind = next(iter(hyp.scores), NO_SCORE)
            if first not in (None, kind):
                raise UserError(
                    f"{path}: utterance {nbest.utt!r}: hypothesis {rank} has {kind}, earlier ones"
                    f" {first}; dump all alike"
                )
            first = kind
        scores = (dict(zip(("am",), hyp.scores.values(), strict=False)) for hyp in nbest.hyps)
        hyps = (hyp.with_scores(renamed) for hyp, renamed in zip(nbest.hyps, scores, strict=True))
        yield replace(nbest, hyps=tuple(hyps))
