"""Language models of GGUF files in this process, by llama.cpp. Sentences go through as trees of
their beginnings, so that what the hypotheses of a list share is computed once: a node of the
tree is a token of all the sequences that go on from it.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.specs import GGUF, LMSpec
from lmtools.llms.options import GgufOptions
from lmtools.score.base import Scorer
from lmtools.score.trees import SentenceTree, TreeBatch

SEQUENCES = 64  # sentences of a tree
ROWS = 128  # nodes that have logits at a time: of Gemma's vocabulary 134 MB
FLOAT32, NO_FLASH = 0, 0  # numbers of llama.cpp's


def load_gguf(spec: LMSpec, computing: Computing) -> "GgufScorer":
    """Load `gguf:FILE`; UserError for what is no GGUF file of a language model."""
    path = spec.lm.removeprefix(GGUF)
    if not Path(path).is_file():
        raise UserError(f"{spec.lm}: no such file; give a GGUF file of a language model")
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise UserError(f"{spec.lm}: is no GGUF file; give one, or a directory by hf:DIR")
    return GgufScorer(path, spec)


class GgufScorer(Scorer):
    """log p of each token of a text and of its end; the tokens are those of the file."""

    kind = "perplexity"

    def __init__(self, path: str, spec: LMSpec):
        self.spec, options = spec, spec.more or GgufOptions()
        self.longest = options.positions
        self.model, self.context = open_model(path, options)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.size = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.end = llama_cpp.llama_vocab_eos(self.vocab)
        begin = llama_cpp.llama_vocab_bos(self.vocab)
        self.begin = self.end if begin < 0 else begin
        if self.end < 0:
            raise UserError(f"{spec.lm}: its tokens have no end of text; give another model")
        self.signature = {
            "lm": "gguf", "model": sha256(path)[:16], "device": "llama.cpp",
            "version": llama_cpp.__version__,
        }  # fmt: skip

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, without a beginning or end."""
        content = text.encode()
        ids = (llama_cpp.llama_token * (len(content) + 8))()
        count = llama_cpp.llama_tokenize(
            self.vocab, content, len(content), ids, len(ids), False, False
        )
        return tuple(ids[:count])

    def prepare(self, texts):
        return [self.fit(text, self.tokenize(self.normalise(text))) for text in texts]

    def fit(self, text: str, ids: tuple) -> tuple:
        """Return the ids of a text; UserError where they are too many."""
        if len(ids) + 1 > self.longest:
            raise UserError(
                f"{self.spec.lm}: {text[:60]!r}... has {len(ids)} tokens, and there is room for"
                f" {self.longest}; give positions={2 * len(ids)} or drop it"
            )
        return ids

    def cost(self, sentence):
        return len(sentence) + 1

    def unknown(self, sentence):
        return np.zeros(len(sentence), dtype=bool)

    def token_names(self, sentence):
        return [llama_cpp.llama_vocab_get_text(self.vocab, i).decode() for i in sentence]

    def plan_trees(self, sentences):
        plan: list[TreeBatch] = []
        beginnings: set[tuple] = set()
        for number, ids in enumerate(sentences):
            new = {ids[:length] for length in range(len(ids) + 1)}
            full = not plan or len(plan[-1]) == SEQUENCES
            if full or len(beginnings | new) > self.longest:
                plan.append(TreeBatch())
                beginnings = set()
            plan[-1].append(number)
            beginnings |= new
        return plan

    def token_log_probs(self, sentences):
        return [
            values
            for tree in self.plan_trees(sentences)
            for values in self.from_tree([sentences[number] for number in tree])
        ]

    def from_tree(self, sentences):
        tree = SentenceTree.of(sentences, self.begin)
        nodes, targets = tree.predictions(self.end)
        members: list[list[int]] = [[] for _ in tree.tokens]
        depths = np.zeros(len(tree.tokens), dtype=np.int64)
        for sequence, path in enumerate(tree.paths):
            depths[path] = range(len(path))
            for node in path:
                members[node].append(sequence)
        values = np.zeros(len(nodes))
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), False)
        for begin in range(0, len(members), ROWS):
            rows = slice(begin, begin + ROWS)
            logits = self.decode(tree.tokens[rows], depths[rows], members[rows])
            here = np.flatnonzero((nodes >= begin) & (nodes < begin + len(logits)))
            highest = logits.max(1, keepdims=True)
            total = np.log(np.exp(logits - highest).sum(1, dtype=np.float64)) + highest[:, 0]
            own = nodes[here] - begin
            values[here] = logits[own, targets[here]] - total[own]
        return tree.split_values(values)

    def decode(self, tokens: Sequence, depths: Sequence, members: Sequence) -> np.ndarray:
        """Return the logits (N, V) behind tokens at their depths in sequences."""
        batch = llama_cpp.llama_batch_init(len(tokens), 0, SEQUENCES)
        try:
            batch.n_tokens = len(tokens)
            for i, (token, depth, sequences) in enumerate(
                zip(tokens, depths, members, strict=True)
            ):
                batch.token[i], batch.pos[i], batch.logits[i] = int(token), int(depth), True
                batch.n_seq_id[i] = len(sequences)
                for place, sequence in enumerate(sequences):
                    batch.seq_id[i][place] = sequence
            if llama_cpp.llama_decode(self.context, batch):
                raise UserError(
                    f"{self.spec.lm}: llama.cpp cannot compute {len(tokens)} tokens; give a smaller"
                    " positions=N, or the model by hf:DIR"
                )
            found = llama_cpp.llama_get_logits(self.context)
            return np.ctypeslib.as_array(found, shape=(len(tokens), self.size)).copy()
        finally:
            llama_cpp.llama_batch_free(batch)


def open_model(path: str, options: GgufOptions) -> tuple:
    """Return llama.cpp's model of a file and a context, in which a tree of sentences has room."""
    llama_cpp.llama_log_set(ignore, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    how = llama_cpp.llama_model_default_params()
    how.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(path.encode(), how)
    if not model:
        raise UserError(f"gguf:{path}: llama.cpp cannot load it; give a whole file that it knows")
    room = llama_cpp.llama_context_default_params()
    room.n_ctx = options.positions
    room.n_batch = room.n_ubatch = ROWS
    room.n_seq_max, room.kv_unified = SEQUENCES, True
    room.n_threads = room.n_threads_batch = options.threads or len(os.sched_getaffinity(0))
    room.type_k = room.type_v = FLOAT32
    room.flash_attn_type, room.swa_full = NO_FLASH, True
    context = llama_cpp.llama_init_from_model(model, room)
    if not context:
        raise UserError(f"gguf:{path}: no memory for positions={options.positions}; give fewer")
    return model, context


@llama_cpp.llama_log_callback
def ignore(level, text, data):
    """Say nothing: what fails is told by a UserError."""
