"""Specifications of language models, and the flags that they replace."""

import pytest

from lmtools import UserError
from lmtools.base.specs import LMSpec


@pytest.mark.parametrize(
    "text, spec",
    [
        ("lm", LMSpec("lm")),
        ("lm,intact=true", LMSpec("lm", intact=True)),
        ("hf:bert,intact=false,oov-penalty=7", LMSpec("hf:bert", oov_penalty=7.0)),
        ("lm,noise=unigram=a.bin", LMSpec("lm", noise="unigram=a.bin")),
        ("mix:a=0.6,b,normalise=none", LMSpec("mix:a=0.6,b", normalise="none")),
        ("mix:a=0.6,b=0.4", LMSpec("mix:a=0.6,b=0.4")),
        ("a,b/lm", LMSpec("a,b/lm")),
    ],
)
def test_a_text_is_a_specification_and_back(text, spec):
    assert LMSpec.parse(text) == spec == LMSpec.parse(str(spec))


@pytest.mark.parametrize(
    "text, message",
    [
        ("lm,intact=3", "intact=3: is neither true nor false; write for instance intact=true"),
        ("lm,oov_penalty=much", "oov_penalty=much: is no number"),
        ("lm,oov_penalty=-1", "is not a finite number from 0"),
        ("lm,oov_penalty=inf", "is not a finite number from 0"),
        ("lm,normalise=half", "'normalise' is 'half', not one of full, none"),
        ("lm,intact=true,intact=true", "intact is given twice; leave one out"),
        ("{here},intakt=true", "no option 'intakt' of a language model; known: intact, normalise"),
    ],
)
def test_what_is_none_is_refused(text, message, tmp_path):
    with pytest.raises(UserError) as error:
        LMSpec.parse(text.format(here=tmp_path))
    assert message in str(error.value)


def test_a_path_that_exists_is_one_as_a_whole(tmp_path):
    (tmp_path / "lm,intact=true").mkdir()
    assert LMSpec.parse(f"{tmp_path}/lm,intact=true") == LMSpec(f"{tmp_path}/lm,intact=true")
