"""The options that several verbs have, each declared once, and the groups that --help shows."""

import argparse

from lmtools.base.computing import Computing
from lmtools.base.context import LONGEST, MAX_LINE
from lmtools.base.options import Option, list_options
from lmtools.text.normaliser import CASINGS, CHOICES, NORMALISERS
from lmtools.text.unify import UNIFIERS
from lmtools.verbs import numbers as n
from lmtools.verbs.help import Rare

POOLS = ("mean", "max", "eos", "cls")  # the names in lmtools.vectors.encoders, which imports torch
WORDS = "words"  # of `lmtools embed`: a vector for each word
WEIGHTS = (
    "how much each score counts: NAME=W,... (`words`: a bonus for each word), or the file that"
    " `lmtools tune` wrote"
)
NORMALISER = (
    "how text is rewritten: none (not at all), cased (straight apostrophes, composed letters),"
    " librispeech (lower case, no punctuation), or the rules that Whisper is scored by ("
    + ", ".join(name for name, preset in NORMALISERS.items() if not preset.wordwise)
    + "); NAME:option=value,... changes some of it"
)
LANGUAGES = ", ".join(name for name in CASINGS if name != "none")


def value(metavar: str | tuple[str, ...] | None, help_text: str, rare=False, **more) -> dict:
    return {"metavar": metavar, "help": Rare(help_text) if rare else help_text, **more}


def switch(help_text: str, rare=False) -> dict:
    """Return what argparse takes for an option without a value."""
    return {"action": "store_true", "help": Rare(help_text) if rare else help_text}


def choice(names, help_text: str, rare=False, **more) -> dict:
    """Return what argparse takes for an option that chooses among names."""
    return {"choices": names, "help": Rare(help_text) if rare else help_text, **more}


def flags_of(kind: type) -> dict[str, dict]:
    """Return what argparse takes for the declared options of a dataclass, by flag."""
    return {
        f"--{name.replace('_', '-')}": describe_flag(*declaration)
        for name, declaration in list_options(kind).items()
    }


def describe_flag(kind: type, default, declared: Option) -> dict:
    help_text = declared.help
    if default is not None and kind is not bool and "(default:" not in help_text:
        help_text += " (default: %(default)s)"
    takes = {"help": Rare(help_text) if declared.rare else help_text, "default": default}
    if kind is bool:
        return takes | {"action": "store_true"}
    takes |= {"choices": declared.choices} if declared.choices else {"metavar": declared.metavar}
    return takes | ({"type": NUMBERS[kind, declared.least]} if kind in (int, float) else {})


NUMBERS = {
    (int, 1): n.positive,
    (int, 0): n.from_zero,
    (float, 0): n.amount,
    (float, None): n.weight,
}

# Group, in the order in which --help shows them -> option -> what argparse takes. A verb may change
# what argparse takes; what the option means stays. Options that are `rare` are in --help-all alone.
GROUPS: dict[str, dict[str, dict]] = {
    "options": {
        "--weights": value(
            "W",
            f"{WEIGHTS} (default: what the lattice's header says, as an SLF's lmscale and"
            " wdpenalty, or else 1 for each score)",
        ),
        "--map-words": value(
            "FILE",
            "replace words in the normalised hypotheses and references, by lines such as"
            " `mr mister`",
            rare=True,
        ),
        "--unify": value(
            "FORM,..",
            "write hypotheses and references in one form of Unicode: "
            + "; ".join(f"{name}: {form.about}" for name, form in UNIFIERS.items()),
            type=n.forms,
            default=(),
            rare=True,
        ),
        "--metric": value(
            "METRIC", "the metric to compute (default: %(default)s)", type=n.metric, default="wer"
        ),
        "--depth": value("N", "use only the first N hypotheses of each list", type=n.positive),
        "--vad": {
            "action": argparse.BooleanOptionalAction,
            "default": None,
            "help": "Whisper does not hear pauses of 2 s and more, found by silero-vad (default:"
            " --vad)",
        },
        "--free": switch(
            "take any answer of the model, not only what the words of a list can build; answers far"
            " from every hypothesis are left out"
        ),
        "--max-ngram-order": value(
            "N",
            "for neural LMs: merge histories that end in the same N-1 words (default: none)",
            type=n.positive,
            rare=True,
        ),
        "--scale": value(
            "X",
            "multiply scores by X before they become probabilities; 0 makes all hypotheses equally"
            " probable (default: %(default)s)",
            type=n.amount,
        ),
        "--states": value(
            "N", "most states of a lattice (default: %(default)s)", type=n.positive, rare=True
        ),
        "--seed": value(
            "N",
            "seed of the random numbers (default: %(default)s)",
            type=n.seed,
            default=1,
            rare=True,
        ),
        "--licence": value(
            "ID", "licence that the model card names, such as apache-2.0", rare=True
        ),
        "--corpus": value("TEXT", "training text that the model card names", rare=True),
        "--vocab-size": value("N", "number of ids, with the five special ones", type=n.positive),
        "--kenlm": value(
            "DIR|auto|none",
            "where KenLM's build_binary is, which makes the model load at once: in DIR; auto (the"
            " default): in $LMTOOLS_KENLM, tools/kenlm or PATH; none: do without it",
            default="auto",
            rare=True,
        ),
    },
    "input": {
        "--nbest": value(
            "F", "N-best lists, in any of the formats of `lmtools convert --help`", required=True
        ),
        "--asr": value("whisper:DIR", "recogniser that scores the texts by the sound of --audio"),
        "--ear": value(
            "whisper:DIR", "second recogniser, which scores the alternatives (docs/ears.md)"
        ),
        "--audio": value(
            "DIR", "recordings, named as the lists are: one file, a directory, Kaldi's wav.scp"
        ),
        "--text": value("F", "text, one sentence on each line (.gz, .xz; - reads a pipe)"),
        "--source": value("F", "the sentences that the text translates"),
        "--kaldi": switch("drop the first word of each line, an utterance id", rare=True),
        "--subword": value("DIR", "subword model, a directory that `lmtools subword` wrote"),
        "--format": value(
            "FMT", "format of the input, NAME or NAME:option=value,... (default: recognised)"
        ),
        "--ref": value("F", "Kaldi text with the references"),
        "--ref-lines": value(
            "F", "plain text with the references, one on each line, in the order of", rare=True
        ),
        "--scores": value(
            "NAME=F",
            "scores of the hypotheses, under a name of your choice: a file that `lmtools score`"
            " wrote, or one plain number for each hypothesis; the names NAME/token and NAME/word"
            " mean the score divided by the number of tokens or words",
            nargs="+",
            action="extend",
            default=[],
        ),
        "--phrases": value(
            "F[,OPTION=..]",
            "glossary with one phrase on each line (`PHRASE :WEIGHT | SPOKEN`), or *.jsonl with"
            " phrases by id; the score `phrases` counts its words in each hypothesis (options:"
            " --help-all)",
        ),
        "--words": value(
            "F[,OPTION=..]",
            "glossary, as for --phrases of lmtools tune: also measure error rates of its words and"
            " of all others, recall, precision and false alarms",
        ),
        "--experiment": value(
            "F.yaml",
            "run this verb for all language models, columns, systems or vectors of an experiment's"
            " file; {lm}, {column}, {system} or {vectors} in a path stands for each name",
            rare=True,
        ),
        "--reverse": switch(
            "p(source | hypothesis), by a model trained in the other direction", rare=True
        ),
        "--written": switch(
            "score the text as the recogniser wrote it, with case and punctuation, where the lists"
            " keep it",
            rare=True,
        ),
        "--against": value("F", "another system: test whether the difference is significant"),
        "--conf": value("F.yaml", "settings; its `base:` may name a file that it refines"),
    },
    "language model": {
        "--lm": value(
            "DIR",
            "language model: a model directory, an installed model, a KenLM or ARPA file, hf:DIR,"
            " gguf:FILE, a server's http://HOST:PORT/v1, or a mixture mix:LM=W,LM=W;"
            " LM,option=value,... sets options (see --help-all)",
            required=True,
        )
    },
    "sentence vectors": {
        "--layer": value(
            "L",
            "layer of the model: 0 (the embeddings), 1 ..., several with commas between them, last"
            " or all (default: last; for words all)",
            type=n.layers,
            dest="layers",
        ),
        "--pool": choice(
            POOLS,
            "the mean or the maximum over the tokens, or the state at the end (eos) or the"
            " beginning (cls) of the sentence (default: mean)",
        ),
        "--boundaries": switch(
            "include the boundary tokens, as BERT's [CLS] and [SEP], in mean and max", rare=True
        ),
        "--masked": switch(
            "for masked models: compute each token's state with this token masked, one pass for"
            " each (default: nothing masked)",
            rare=True,
        ),
    },
    "normaliser": {
        "--normaliser": value("NAME", f"{NORMALISER} (default: none)"),
        **{
            f"--{name.replace('_', '-')}": choice(
                allowed, f"change the normaliser's {name.replace('_', ' ')}", rare=True
            )
            for name, allowed in CHOICES.items()
        },
    },
    "output": {
        "--out": value("F", "file to write", required=True),
        "--to": value("FMT", "format of the output (default: %(default)s)", default="jsonl"),
        "--text-out": value("F", "write the best paths as Kaldi text"),
        "--nbest-out": value("F", "write N-best lists"),
        "--nbest-to": value(
            "FMT", "format of --nbest-out (default: %(default)s)", default="jsonl", rare=True
        ),
    },
    "machine": {
        **flags_of(Computing),
        "--cmd": value(
            "CMD",
            "program that runs the --nj parts as jobs, as Kaldi's run.pl does, for example"
            " 'utils/slurm.sh --mem 4G' (default: $LMTOOLS_CMD, or local: on this machine)",
            rare=True,
        ),
        "--shard": value(
            "I/N",
            "do part I of N and write OUT.I-of-N; `lmtools merge` joins the parts",
            type=n.shard,
            rare=True,
        ),
    },
    "every verb": {
        "--debug": switch("show the traceback of an error", rare=True),
        "--allow-commands": switch(
            "run the commands in lines `key command |` of Kaldi's script files (default: refuse)",
            rare=True,
        ),
        "--max-line": value(
            "SIZE",
            "longest line to read, such as 500000, 64K, 16M or 2G; 16 times as much for a file that"
            f" is read whole (default: ${MAX_LINE} or {LONGEST})",
            type=n.size,
            rare=True,
        ),
    },
}
SEVERAL_TEXTS = {"nargs": "+", "action": "extend"}
SEVERAL_LMS = {"action": "append", "default": [], "required": False, "metavar": "NAME=DIR"}
ENCODER = {
    "metavar": "LM",
    "help": "a neural model's directory, hf:DIR (a Hugging Face model), words:F (the mean of word"
    " vectors in a GloVe or word2vec text file), tfidf (counted on the texts themselves) or"
    " tfidf:TEXT",
}
EMBED_POOL = {
    "choices": (*POOLS, WORDS),
    "help": "a vector for each word (words), the mean or the maximum over the tokens, or the state"
    " at the end (eos) or the beginning (cls) of the sentence (default: words for a two-way model,"
    " else mean)",
}
COLUMN = ("--reverse", "--written")  # of an experiment's column, beside options of its LM
COMPUTING = ("--device", "--precision", "--engine", "--cache", "--rows")
CLUSTER = ("--nj", "--cmd", "--shard")
