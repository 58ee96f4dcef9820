"""Neural language models: one family a file; what all of them declare is in base.py."""

from lmtools.models.causal import Causal
from lmtools.models.elmo import Elmo
from lmtools.models.gcnn import Gcnn
from lmtools.models.lstm import Lstm
from lmtools.models.masked import Masked
from lmtools.models.seq2seq import Seq2seq
from lmtools.models.tta import Tta

MODELS = {
    "causal": Causal,
    "masked": Masked,
    "tta": Tta,
    "lstm": Lstm,
    "gcnn": Gcnn,
    "elmo": Elmo,
    "seq2seq": Seq2seq,
}
