"""sacrebleu's tokenisers of BLEU, and its metrics made with one."""

import os
from collections.abc import Mapping

from lmtools.base.errors import UserError

# Those of sacrebleu without `spm`, its former name of flores101; the first is its default.
TOKENISERS = (
    *("13a", "zh", "char", "intl", "none", "ja-mecab", "ko-mecab"),
    *("flores101", "flores200", "spBLEU-1K"),
)
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}  # of the package, which these tokenisers need


def load_metric(name: str, settings: Mapping):
    """Return sacrebleu's metric of the class `name`; UserError where its tokeniser lacks a package,
    or a model, which sacrebleu would fetch from the network.
    """
    import sacrebleu.metrics

    tokeniser = settings.get("tokenize")
    refuse_missing_model(tokeniser)
    try:
        return getattr(sacrebleu.metrics, name)(**settings)
    except (ImportError, RuntimeError, OSError, AssertionError) as error:
        extra = EXTRAS.get(tokeniser)
        cause = next(filter(None, str(error).splitlines()), type(error).__name__)
        remedy = f"pip install 'sacrebleu[{extra}]'" if extra else "fetch its model again"
        raise UserError(
            f"sacreBLEU's tokeniser {tokeniser}: {cause.strip(' .')}; {remedy}"
        ) from None


def refuse_missing_model(tokeniser: str | None) -> None:
    """Raise UserError where a SentencePiece model of sacrebleu is not on this disk."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if tokeniser not in SPM_MODELS:
        return
    url = SPM_MODELS[tokeniser]["url"]
    path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
    if not os.path.exists(path):
        fetch = f"import sacrebleu; sacrebleu.BLEU(tokenize={tokeniser!r})"
        raise UserError(
            f"{path}: the model of sacreBLEU's tokeniser {tokeniser} is not there; fetch it where"
            f' there is a network: python -c "{fetch}"'
        )
