"""What readers refuse, and what writers do: one line that says where, why and what to do."""

import math

import pytest
from fuzz import targets

from lmtools.errors import UserError
from lmtools.formats import FORMATS, registry
from lmtools.types import Hypothesis, NBest

TARGETS = targets()
WORDS = "<eps> 0\nblue 412\nfinch 77\nßing 5\n"
# (format, file, its content, what is said first, {what stands in the content: what is said then}):
# a text stands for %s, a pair (old, new) is replaced; of directories, files are replaced
# fmt: off
READ = [
    ("ctm", "h.ctm", "a 1 0.0 0.1 x\n%s\n", "", {
        "b 1 0.1 0.2": ":2: expected `utt channel start",
        "b 1 0.1 0.2 x 0.9 y": ":2: expected `utt channel start",
        "b 1 * * <ALT_BEGIN>":
            ":2: expected `utt channel start duration word [confidence]`, no alternations",
        "b 1 x 0.2 x": ":2: start is 'x'",
        "b 1 0.1 inf x": ":2: duration is 'inf'",
        "a 2 0.1 0.2 x": ":2: 'a' has two channels",
        "b 1 0.1 0.2 x\na 1 0.1 0.2 x": ":3: utterance 'a' occurs a second time",
    }),
    ("espnet1", "data.json", '{"utts": {"a": {"output": [%s]}}}', ": utterance 'a': ", {
        "[]": "'output' is a list of lists, one a speaker",
        "7": "hypothesis 1: it is 7",
        "{}": "hypothesis 1: key 'rec_text' is missing",
        '{"rec_text": "x", "score": null}': "hypothesis 1: score 'score' is null",
        '{"rec_text": "x", "text": 1}': "'text' is 1",
        '{"rec_text": "x", "score": 1}, {"rec_text": "x"}': "hypothesis 2 has scores (none)",
    }),
    ("espnet1", "data.json", "%s", "", {
        '{"utts": {\n"a": }}': ":2: not JSON",
        "[]": ": the file is []",
        "{}": ": key 'utts' is missing",
        '{"utts": {"a": {}}}': ": utterance 'a': key 'output' is missing",
        '{"utts": {"a b": {"output": []}}}':
            ": utterance 'a b': utterance id 'a b' is empty or holds white space",
    }),
    ("espnet2", "",
     {"1best_recog/text": "zed1 x\nzed2\n", "1best_recog/score": "zed1 -1\nzed2 0\n",
      "2best_recog/text": "zed1 y\n", "2best_recog/score": "zed1 -2\n"}, "", {
        ("1best_recog/score", "zed1 tensor(-7.41)\nzed2 tensor(nan)\n"):
            "/1best_recog/score:2: score is 'nan'",
        ("1best_recog/score", "zed1 -inf\nzed2 0\n"): "/1best_recog/score:1: score is '-inf'",
        ("1best_recog/score", "zed1 tensor(-7.41\nzed2 0\n"):
            "/1best_recog/score:1: score is 'tensor",
        ("1best_recog/score", "zed1\nzed2 0\n"): "/1best_recog/score:1: score is ''",
        ("1best_recog/score", "zed1 -1\n"): "/1best_recog: utterance 'zed2' is only in one of",
        ("2best_recog/score", "zed1 -1\nzed9 -2\n"):
            "/2best_recog: utterance 'zed9' is only in one of",
        ("1best_recog/text", "zed1 a\nzed1 b\n"):
            "/1best_recog/text:2: utterance 'zed1' occurs a second time",
        ("3best_recog/text", "zed1 a\n"): "/3best_recog: some rank directories have a file `score`",
        ("3best_recog/score", "zed1 -1\n"): "/3best_recog/text: cannot read",
    }),
    ("fairseq", "log", "%s", "", {
        "x\nH-0 -0.4 a": ":2: no tab after 'H-0'",
        "H-0\t-0.4": ":1: no tab after the score",
        "H-0\tnan\ta": ":1: the score is 'nan'",
        "H-0\t-1\ta\nP-0\t-1 x": ":2: a token's score is 'x'",
        "H-0\t1e308\ta b": ":1: the score is '1e308', too large",
        "H-0\t-1\ta\nH-0\t-1\tb\nD-0\t-1\ta": ":3: 1 lines D-0 for 2 of H-0",
        "P-0\t-1": ":1: 1 lines P-0 for 0 of H-0",
        "S-0\ta\nH-0\t-1\ta\nS-0\ta": ":3: a second line S-0",
    }),
    ("hyporadise", "h.json", "[%s]", ": list ", {
        "7": "1: it is 7; expected an object",
        '{"output": "x"}': "1: key 'input' is missing",
        '{"input": "x"}': "1: 'input' is",
        '{"input": [null]}': "1: a hypothesis is null; expected a text",
        '{"input": ["\\ud800"]}': "1: '\\ud800' holds half a surrogate",
        '{"input": [], "output": 3}': "1: 'output' is 3",
        '{"input": [], "id": []}': "1: 'id' is []",
        '{"input": [], "id": "a b"}': "1: utterance id 'a b' is empty or holds white space",
        '{"input": [], "id": "a"}, {"input": [], "id": "a"}':
            "2: utterance 'a' occurs a second time",
        '{"input": ["x"], "am_score": [1, 2]}': "1: 2 scores in 'am_score' for 1 hypotheses",
        '{"input": ["x"], "am_score": ["1"]}': "1: score 'am_score' is",
        '{"input": ["x"], "am_score": [NaN]}': "1: score 'am_score' is NaN; expected a finite",
        '{"input": ["x"], "am_score": [1]}, {"input": ["x"]}':
            "2: hypothesis 1 has scores (none), earlier ones am",
    }),
    ("vosk", "v.json", '{"utt": "a", "alternatives": []}\n%s', ":2: ", {
        "{": "not JSON",
        "[]": "the line is []; expected an object",
        '{"alternatives": []}': "key 'utt' is missing",
        '{"utt": "a b", "text": ""}': "utterance id 'a b' is empty or holds white space",
        '{"utt": "a", "text": ""}': "utterance 'a' occurs a second time",
        '{"utt": "b"}': "key 'text' is missing",
        '{"utt": "b", "alternatives": {}}': "'alternatives' is {}; expected a list",
        '{"utt": "b", "alternatives": [{"text": 3}]}': "alternative 1: 'text' is 3",
        '{"utt": "b", "alternatives": [{"text": "", "confidence": NaN}]}':
            "alternative 1: score 'confidence' is NaN; expected a finite",
        '{"utt": "b", "alternatives": [{"text": "", "confidence": 1}, {"text": ""}]}':
            "hypothesis 2 has scores (none), earlier ones am",
    }),
    ("nemo", "preds_out_width2_alpha1_beta0.tsv", "a\t-1\n%s\n", "", {
        "b -1": ":2: no tab; expected `text TAB score`",
        "b\tnan": ":2: the score is 'nan'; expected a finite number",
        "b\t-1\nc\t-1": ": no multiple of 2 lines, so that some utterance has fewer",
    }),
    ("cloud", "c.json", '{"utt": "a"}\n%s', ":2: ", {
        "[]": "the line is []; expected an object",
        '{"utt": "a"}': "utterance 'a' occurs a second time",
        '{"results": []}': "key 'utt' is missing",
        '{"utt": "b", "hyps": []}': "no results of Google, AWS or Azure, but 'hyps'",
        '{"utt": "b", "results": 3}': "'results' is 3; expected a list",
        '{"utt": "b", "results": [3]}': "segment 1: it is 3; expected an object",
        '{"utt": "b", "results": [{"x": 3}]}': "key 'alternatives' is missing",
        '{"utt": "b", "results": {}}': "key 'transcripts' is missing",
        '{"utt": "b", "NBest": [3]}': "segment 1: alternative 1: it is 3",
        '{"utt": "b", "NBest": [{"Confidence": 1}]}':
            "segment 1: alternative 1: key 'transcript' is missing",
        '{"utt": "b", "NBest": [{"Confidence": 7, "Lexical": "x"}]}':
            "segment 1: alternative 1: a confidence is not from 0 to 1",
        '{"utt": "b", "NBest": [{"Confidence": NaN, "Lexical": "x"}]}':
            "segment 1: alternative 1: score 'Confidence' is NaN",
        '{"utt": "b", "ref": "x", "recognizedPhrases": [{"nBest": []}, {"nBest": []}]}':
            "2 segments have one 'ref'",
    }),
    ("cloud:text=x", "c.json", "%s", "text=x: neither lexical nor", {'{"utt": "a"}': ""}),
    ("sockeye", "s.json", '{"sentence_id": 1, "translation": "a", "score": 1}\n%s', "", {
        "[]": ":2: the line is []; expected an object",
        "{}": ":2: key 'sentence_id' is missing",
        '{"sentence_id": 1, "translation": "a", "score": 1}': ":2: utterance '1' occurs a second",
        '{"sentence_id": true, "translation": "a", "score": 1}': ":2: 'sentence_id' is true",
        '{"sentence_id": 2, "translation": "a"}': ":2: score 'a score' is null",
        '{"sentence_id": 2, "score": 1}': ":2: a translation is null; expected a text",
        '{"sentence_id": 2, "translations": ["a", "b"], "scores": [1]}':
            ":2: 1 scores for 2 translations",
        '{"sentence_id": 2, "translations": ["a", "b", "c"], "scores": [1, 2, 1]}':
            ": scores rise and fall",
        '{"sentence_id": 2, "translation": "a", "score": -1}': ": scores rise and fall",
    }),
    ("sockeye:bpe=x", "s.json", "%s", "bpe=x: no such subword marks", {"": ""}),
    ("whisper", "u1.json", "%s", ": ", {
        "{}": "key 'text' is missing",
        '{"text": 3, "segments": []}': "'text' is 3; expected a text",
        '{"transcription": [{"text": "a"}, 3]}': "a part is 3; expected an object",
    }),
    ("beams", "b.json", '{"utt": "a", "beams": []}\n%s', ":2: ", {
        '{"utt": "b", "text": ["a"], "logit_score": [1, 2], "lm_score": [1, 2]}':
            "1 items in 'text' for 2 in 'logit_score'",
        '{"utt": "b", "text": ["a"], "logit_score": [1]}': "key 'lm_score' is missing",
        '{"utt": "b", "text": ["a"], "logit_score": [1], "lm_score": ["x"]}':
            "beam 1: score 'lm_score' is 'x'",
    }),
    ("sherpa-onnx", "s.txt", '{"utt": "a", "text": ""}\n%s', ":2: ", {
        '{"text": ""}': "no line with the file's name before it",
        '{"utt": "a", "text": ""}': "utterance 'a' occurs a second time",
        '{"utt": "b"}': "key 'text' is missing",
        '{"utt": "b", "text": "", "ys_log_probs": [null]}': "score 'ys_log_probs' is null",
        '{"utt": "b", "text": "", "ys_log_probs": 3}': "'ys_log_probs' is 3; expected a list",
        "{": "not JSON",
    }),
    ("wenet", "result", "wav a\n%s\n", ":2: ", {
        "blue": "expected `wav UTT`, then `candidate SCORE TEXT`",
        "candidate blue": "the score is 'blue'; expected a finite number",
        "candidate inf blue": "the score is 'inf'; expected a finite number",
        "wav a": "utterance 'a' occurs a second time",
        "wav b c": "utterance id 'b c' is empty or holds white space",
    }),
    ("wenet", "result", "%s\n", ":1: ", {"candidate -1 x": "expected `wav UTT`"}),
    ("beams", "b.jsonl", '{"utt": "a", "beams": []}\n%s', ":2: ", {
        "{": "not JSON",
        '{"utt": "a", "beams": []}': "utterance 'a' occurs a second time",
        '{"beams": []}': "key 'utt' is missing",
        '{"utt": "b"}': "key 'beams' is missing",
        '{"utt": "b", "beams": [3]}': "beam 1: is 3; expected what pyctcdecode",
        '{"utt": "b", "beams": ["x;1"]}': "beam 1: is 'x;1'; expected what pyctcdecode",
        '{"utt": "b", "beams": ["x;1;nan"]}': "beam 1: a score is 'nan'",
        '{"utt": "b", "beams": [["x", -1]]}': "beam 1: is [\"x\", -1]; expected",
        '{"utt": "b", "beams": [["x", null, [], -1, NaN]]}': "beam 1: score 'a score' is NaN",
        '{"utt": "b", "beams": [[null, -1, -1]]}': "beam 1: the text is null; expected a text",
        '{"utt": "b", "beams": [{"words": "x", "score": 1}]}': "beam 1: 'words' is",
        '{"utt": "b", "beams": [{"words": [3], "score": 1}]}': "beam 1: a word is 3",
        '{"utt": "b", "beams": [{"text": "x"}]}': "beam 1: key 'score' is missing",
        '{"utt": "b", "beams": [["x", -1, -1], {"text": "x", "score": 1}]}':
            "hypothesis 2 has scores am, earlier ones am, lm",
    }),
    ("hyporadise", "h.json", "%s", "", {
        '[\n{"input": [}]': ":2: not JSON",
        '[{"input": [], "input": []}]': ": not JSON (a key occurs twice",
        "[" * 100000: ": n",
        "\n\udcff": ":2: not UTF-8",
        "{}": ": the file is {}; expected a list",
    }),
    ("icefall", "recogs.txt", "a-0:\tref=['x']\n%s\n", "", {
        "b-0 ref=['x']": ":2: expected `ID:<TAB>ref",
        "b-0:\tscore=1": ":2: expected `ID:<TAB>ref",
        ":\tref=[]": ":2: utterance id '' is empty",
        "b 0:\tref=[]": ":2: utterance id 'b 0' is empty or holds white space",
        "b-0:\thyp=['x'": ':2: "[\'x\'" is not a list of words',
        "b-0:\thyp=['x', 3]": ':2: "[\'x\', 3]" is not a list of words',
        "b-0:\thyp=[['x'], ['y']]": ':2: "[[\'x\'], [\'y\']]" is not a list of words',
        "b-0:\thyp=[open('x')]": ':2: "[open(\'x\')]" is not a list of words',
        "b-0:\thyp=['\\ud800']": ":2: '\\ud800' holds half a surrogate",
        "b-0:\thyp=" + "[" * 5000:
            ":2: '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[' is not a list of words",
        "b-0:\tref=['x']\nb-0:\tref=['y']": ":3: 'b-0' has two different references",
        "b-0:\tref=[]\na-0:\tref=[]": ":3: utterance 'a-0' occurs a second time",
    }),
    ("jsonl", "n.jsonl",
     '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}}]}\n\n'
     '{"utt": "b", "hyps": [{"text": "x", "scores": {%s}}]}\n', ":3: hypothesis 1: score ", {
        '"am": "1"': "'am' is",
        '"am": true': "'am' is true",
        '"am": NaN': "'am' is NaN",
        '"am": -Infinity': "'am' is -Infinity",
        '"am": 1e999': "'am' is Infinity; expected a finite",
        '"am": 1' + "0" * 400:
            "'am' is 1000000000000000000000000000000000000000...; expected a finite",
        '"a m": 1': "name",
        '"a=m": 1': "name",
    }),
    ("jsonl", "n.jsonl",
     '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}}]}\n\n'
     '{"utt": "b", "hyps": [%s]}\n', ":3: hypothesis ", {
        "{}": "1: key 'text' is missing",
        '"x"': "1: it is",
        '{"text": null}': "1: 'text' is null",
        '{"text": "x", "scores": [1]}': "1: 'scores' is",
        '{"text": "x", "score": -1}': "1: unknown key",
        '{"text": "\\ud800"}': "1: '\\ud800' holds half a surrogate",
        '{"text": "x"}': "1 has scores (none), earlier ones am",
        '{"text": "x", "scores": {"am": 1}}, {"text": "x", "scores": {"lm": 1}}': "2",
    }),
    ("jsonl", "n.jsonl",
     '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}}]}\n\n%s\n', ":3: ", {
        "blue finch": "not JSON",
        '{"utt": "b", "hyps": [': "not JSON",
        "[" * 100000: "n",
        "17": "the line is 17; expected an object",
        '{"hyps": []}': "key 'utt' is missing",
        '{"utt": "b"}': "key 'hyps' is missing",
        '{"utt": 7, "hyps": []}': "'utt' is 7",
        '{"utt": "b", "ref": ["x"], "hyps": []}': "'ref' is",
        '{"utt": "b", "hyps": {"text": "x"}}': "'hyps' is",
        '{"utt": "b", "id": 1, "hyps": []}': "unknown key",
        '{"utt": "b", "utt": "c", "hyps": []}': "not JSON (a key occurs twice",
        '{"utt": "b c", "hyps": []}': "utterance id 'b c' is empty or holds white space",
        '{"utt": "b\\u3000c", "hyps": []}':
            "utterance id 'b\\u3000c' is empty or holds white space",
        '{"utt": "", "hyps": []}': "utterance id '' is empty",
        '{"utt": "a", "hyps": []}': "utterance 'a' occurs a second time",
    }),
    ("jsonl", "n.jsonl",
     '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}}]}\n\n%s\n', "", {
        '{"utt": "b", "hyps": [{"text": "x", "scores": {"am": 1' + "0" * 9000 + "}}]}": "",
    }),
    ("kaldi-nbest", "", {"words_text": "a-1 x\na-2 y\n", "acwt": "a-1 1\na-2 2\n"}, "", {
        ("words_text", "a-1 x\na blue\n"): "/words_text:2: key 'a' does not end in -n",
        ("words_text", "a-x blue\n"): "/words_text:1: key 'a-x' does not end in -n",
        ("acwt", "a-1 1\n"): ": the file of 'am' lacks the key 'a-2'",
        ("acwt", "a-1 1\na-2 2\nb-1 1\n"):
            ": the file of 'am' has, but not the texts, the key 'b-1'",
        ("acwt", "a-1 1\na-1 1\n"): "/acwt:2: key 'a-1' occurs a second time",
        ("acwt", "a-1 x\n"): "/acwt:1: the value of 'a-1' is 'x'",
        ("lmwt.nolm", "a-1 1\n", "lmwt.withlm", "a-1 1\na-2 1\n"):
            ": lmwt.nolm lacks the key 'a-2' of lmwt.withlm",
        ("ali", "a-1 1.5\n"): "/ali:1: '1.5' is not an integer",
        ("words_text", "a-1 x\na-01 y\n", "acwt", "a-1 1\na-01 2\n"):
            "/words_text: utterance 'a': number 1 occurs twice",
        ("words_text", None): ": no words_text and no words",
    }),
    ("kaldi-text", "text", "%s", "", {
        "a x\n x y\n": ":2: no utterance id",
        "a x\n\nb y\n": ":2: no utterance id",
        "a x\nb y\na z\n": ":3: utterance 'a' occurs a second time",
        "a\xa0x y\n": ":1: utterance id 'a\\xa0x' is empty or holds white space",
    }),
    ("marian", "n", "%s", "", {
        "0 ||| x ||| 0-0 ||| 1-1 ||| F0= 1 ||| 1\n": ":1: two of 6 fields are alignment; expected",
        "0 ||| x ||| F0= 1 ||| 1\n0 ||| x ||| 1\n": ":2: feature value '1' has no name before it",
    }),
    ("mlm", "am.json", '{"a": {%s}}', ": utterance 'a': ", {
        '"hyp_1": []': "hyp_1: it is []",
        '"hyp_1": {}': "hyp_1: key 'text' is missing",
        '"hyp_1": {"text": 3}': "hyp_1: 'text' is 3",
        '"hyp_1": {"text": "x", "score": "3"}': "hyp_1: score 'score' is",
        '"hyp_1": {"text": "x", "score": 1e999}':
            "hyp_1: score 'score' is Infinity; expected a finite",
        '"hyp_1": {"text": "x"}, "hyp_01": {"text": "x"}':
            "the number of a hypothesis occurs twice",
        '"ref": 3': "'ref' is 3",
    }),
    ("mlm", "am.json", "%s", "", {
        '{"a": {\n"hyp_1": }}': ":2: not JSON",
        "[]": ": the file is []; expected an object",
        '{"a": 1}': ": utterance 'a': it is 1",
        '{"a b": {}}': ": utterance 'a b': utterance id 'a b' is empty or holds white space",
        '{"\\ud800": {}}': ": utterance '\\ud800': '\\ud800' holds half a surrogate",
        '{"a": {"hyp_1": {"text": "x"}}, "b": {"hyp_1": {"text": "x", "score": 1}}}':
            ": utterance 'b': hypothesis 1 has scores am",
    }),
    ("moses", "n", "0 ||| blue ||| LM0= 1 ||| 1\n%s\n", "", {
        "blue finch": ":2: no `|||`",
        " ||| blue ||| d: 1 ||| 1": ":2: utterance id '' is empty",
        "1 2 ||| blue ||| LM0= 1 ||| 1": ":2: utterance id '1 2'",
        "1 ||| blue ||| LM0= 1 ||| nan": ":2: the total is 'nan'",
        "1 ||| blue ||| LM0= 1e400 ||| 1": ":2: feature 'LM0' is '1e400'",
        "1 ||| blue ||| -1 LM0= 1 ||| 1": ":2: feature value '-1' has no name",
        "1 ||| blue ||| LM0= TM0= 1 ||| 1": ":2: feature 'LM0' has no value",
        "1 ||| blue ||| LM0= 1 LM0= 2 ||| 1": ":2: two feature values would be called 'LM0'",
        "1 ||| blue ||| = 1 ||| 1": ":2: score name ''",
        "1 ||| blue ||| TM0= 1 ||| 1": ":2: hypothesis 1 has scores TM0, am, earlier ones LM0, am",
        "99999999 ||| blue ||| LM0= 1 ||| 1": ":2: sentence 99999999 follows 0",
        "1 ||| x ||| LM0= 1 ||| 1\n0 ||| x ||| LM0= 1 ||| 1":
            ":3: utterance '0' occurs a second time",
    }),
    ("scores", "a.scores", "# lmtools-scores {}\n%s", ":", {
        "a#2\t-1\t2\n": "2: utterance 'a' has rank 2 where 1 is due",
        "a#1\t-1\t2\na#3\t-1\t2\n": "3: utterance 'a' has rank 3 where 2 is due",
        "a#1\t-1\t2\nb#1\t-1\t2\na#1\t-1\t2\n": "4: utterance 'a' has rank 1 where 2 is due",
        "a#0\t-1\t2\n": "2: utterance 'a' has rank 0",
        "a#1\tnan\t2\n": "2: log-probability is 'nan'; expected a finite number",
        "a#1\t-inf\t2\n": "2: log-probability is '-inf'; expected a finite number",
        "a#1\t-1e999\t2\n": "2: log-probability is '-1e999'; expected a finite number",
        "a#1\t1_0\t2\n": "2: log-probability is '1_0'; expected a finite number",
        "a#1\t-1\n": "2: expected `utt#rank",
        "a#1 -1 2\n": "2: expected `utt#rank",
        "a\t-1\t2\n": "2: expected `utt#rank",
        "a#1\t-1\t-2\n": "2: expected `utt#rank",
        "\n": "2: expected `utt#rank",
        "a#1\t-1.0\t2\t0123456789ab\n": "2: the row has a check, and the header has none",
    }),
    ("scores", "a.scores", "%s", "", {
        "": ":1: no header",
        "a#1\t-1\t2\n": ":1: no header",
        "# lmtools-scores {\n": ":1: no header",
        "# lmtools-scores [1]\n": ":1: no header",
        "# lmtools-scores {}\t0123456789ab\n": ":1: the header is damaged",
        "# lmtools-scores {}\tf98a1ef8b1eb\na#1\t-1.0\t2\n":
            ":2: the row has no check, and the header has one",
        "# lmtools-scores {}\tf98a1ef8b1eb\na#1\t-1.00\t2\t0123456789ab\n":
            ":2: the row is damaged",
    }),
    ("srilm", "zed1", "%s", "", {
        "-1 -2\n": ":1: 2 fields; expected",
        "-1 x 1 a\n": ":1: the lm score is 'x'",
        "-1 -1e400 1 a\n": ":1: the lm score is '-1e400'",
        "-1 1e308 1 a\n": ":1: the lm score is '1e308', too large",
        "-1 -2 a b\n": ":1: number of words is 'a'",
        "-1 -2 1 a\n(-7) a\n":
            ":2: a line without `(score)` after lines that have it, or the other way round",
        "NBestList1.0\n-7 a\n": ":2: starts with '-7'; expected `(score) w1 w2 ...`",
        "NBestList1.0\n(x) a\n": ":2: the score is 'x'",
        "NBestList1.0\n(-7) a\nNBestList1.0\n": ":3: a second header",
        "NBestList2.0\n(-7) a\n": ":2: not `word ( st: # et: # g: # a: # )` throughout",
        "NBestList2.0\n(-7) a ( st: 0 et: x g: 1 a: 1 )\n": ":2: time et: is 'x'",
        "NBestList2.0\n(-7) a ( st: 0 et: 1 g: 1 a: x )\n": ":2: an a: score is 'x'",
    }),
    ("systems:ids=lines", "", {}, "", {
        ("a.txt", "x\ny\n", "b.txt", "x\n"): "b.txt:2: the file ends where a.txt goes on",
        ("a.txt", "x\n", "b.txt", "x\ny\n"): "a.txt:2: the file ends where b.txt goes on",
        ("a b.txt", "x\n"): ": score name 'a b'",
    }),
    ("systems:ids=kaldi", "", {}, "", {
        ("a.txt", "u x\n", "b.txt", "u x\nv y\n"):
            "a.txt: no utterance 'v', which other systems have",
        ("a.txt", "u x\nv y\n", "b.txt", "u x\n"):
            "b.txt: no utterance 'v', which other systems have",
    }),
    ("systems:ids=names", "", {}, "", {
        ("a.txt", "x\n"): "ids=names",
    }),
    ("trn", "h.trn", "ok (b)\n%s\n", "", {
        "blue finch": ":2: no utterance id at the end of the line",
        "blue (a b)": ":2: no utterance id at the end of the line",
        "{ um / uh } (a)": ":2: '{' is markup in trn",
        "(um) blue (a)": ":2: '(um)' is markup in trn",
        "@ (a)": ":2: '@' is markup in trn",
        "bl* (a)": ":2: 'bl*' is markup in trn",
        "x;y (a)": ":2: 'x;y' is markup in trn",
        "a\\b (a)": ":2: 'a\\\\b' is markup in trn",
        "x ()": ":2: no utterance id at the end of the line",
        "y (b)": ":2: utterance 'b' occurs a second time",
    }),
    ("whisper", "n.json", '[{"utt": "a", "hypotheses": [%s]}]', ": utterance 'a': hypothesis ", {
        "3": "1: it is 3",
        "{}": "1: key 'text' is missing",
        '{"text": "x", "score": "1"}': "1: score 'score' is",
        '{"text": "x", "score": 1, "sum_logprob": 1}': "1: has sum_logprob and score; give one",
        '{"text": "x", "score": 1, "tokens": "ab"}': "1: 'tokens' is",
        '{"text": "x", "score": 1, "tokens": true}': "1: 'tokens' is true",
        '{"text": "x", "score": 1, "tokens": -1}': "1: 'tokens' is -1",
        '{"text": "x", "score": 1e308, "tokens": 100}': "1: its score times its tokens is inf",
        '{"text": "", "score": 1, "tokens": 9}, {"text": "", "score": 1}':
            "2 has score, earlier ones score and tokens",
        '{"text": "x", "score": 1}, {"text": "x"}': "2 has no score, earlier ones score",
        '{"text": "x", "score": 1, "tokens": 1, "length_penalty": "x"}':
            "1: score 'length_penalty' is",
    }),
    ("whisper", "n.json", "%s", "", {
        '[\n{"utt": }]': ":2: not JSON",
        "3": ": the file is 3",
        "[3]": ": list 1: it is 3",
        '[{"hypotheses": []}]': ": list 1: key 'utt' is missing",
        '[{"utt": "a"}]': ": utterance 'a': key 'hypotheses' is missing",
        '[{"utt": "a", "hypotheses": []}, {"utt": "a", "hypotheses": []}]':
            ": list 2: utterance 'a' occurs a second time",
    }),
    ("stsb", "pairs",
     'main-news\tMSRpar\t2012train\t0001\t3.800\tHe said "no\tShe said "no"\n'
     'forums\tanswers\t2015\t0002\t0\tA b\tC\thttp://x\t"y"\n', "", {
        ("3.800", "high"): ":1: the similarity is 'high'; expected a finite number",
        ("\t0\t", "\tnan\t"): ":2: the similarity is 'nan'",
        ("\t0\t", "\t1e999\t"): ":2: the similarity is '1e999'",
        ("\t0\t", "\t\t"): ":2: the similarity is ''",
        ("A b", " "): ":2: the first sentence is empty; add",
        ("\tC\t", "\t\t"): ":2: the second sentence is empty; add",
        ('y"\n', 'y"\na\tb\tc\td\t5\te\n'): ":3: 6 fields; expected genre, file",
        ('y"\n', 'y"\n\n'): ":3: 1 fields; expected",
    }),
    ("glue", "pairs",
     "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\t%s\n", ":", {
        "score": " holds no sentence pair; give",
        "sentence2": "1: the header names 2 columns 'sentence2'; add",
        "score\tscore": "1: the header names 2 columns 'score'; add",
        "score\n0\tg\tf\ty\t1\tn\tn\ta\tb": "2: 9 fields below a header of 10; give",
    }),
    ("glue", "pairs", "%s", "", {
        "": ":1: the header names 0 columns 'sentence1'; add",
        "a\tb\n": ":1: the header names 0 columns 'sentence1'; add",
    }),
    ("sick:set=test", "pairs", "%s", "", {
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\ta\tb\t1\tX\n":
            ":1: set=test, but there is no column SemEval_set; drop",
    }),
    ("tsv", "pairs", "%s", "", {
        "a\tb\t1\nc\td\n": ":2: has no similarity, unlike those before; give",
        "a\tb\nc\td\t1\n": ":2: has a similarity, unlike those before; give",
        "a\tb\nc\n": ":2: 1 fields; expected left, right, score, with tabs",
        "a\tb\t1\tc\n": ":1: 4 fields; expected left, right, score, with tabs",
    }),
    ("slf", "file.slf",
     "VERSION=1.0\nN=3 L=2\nI=0 W=!NULL\nI=1 W=blue\nI=2 W=so\nJ=0 S=0 E=1 a=-1\n"
     "J=1 S=1 E=2 a=-8\n", "", {
        ("L=2", "L=3"): ":1: L=3, but there are 2 links",
        ("N=3", "N=4"): ":1: N=4, but there are 3 nodes",
        (" L=2", ""): ":1: no L=",
        ("S=1", "S=7"): ":7: S=7, but there are 3 nodes",
        ("S=1 ", ""): ":7: a link without S=",
        ("a=-8", "a=x"): ":7: a is 'x'",
        ("a=-8", "a=-8 a=-9"): ":7: field 'a' occurs twice",
        ("J=1", "J=1 nonsense"): ":7: 'nonsense S=1",
        ("VERSION=1.0", "VERSION=1.0 base=-1"): ":1: base=-1",
        ("VERSION=1.0", "VERSION=1.0 start=9"): ":1: start=9",
        ("S=0 E=1", "S=0 E=2"): ":1: 2 nodes could be the start",
        ("S=1 E=2", "S=1 E=0"): ":1: 0 nodes could be the start",
        ("J=1", "J=1 W=x"): ":1: words on nodes and on links",
        ("W=blue", "W=\\377"): ":4: '\\\\377' is not UTF-8",
        ("W=blue", 'W="blue finch"'): ":4: the word 'blue finch' holds white space",
        ("VERSION=1.0", 'UTTERANCE="a b"'): ":1: utterance id 'a b'",
    }),
    ("kaldi:words={}/words.txt", "x.ark",
     "zed1 \n0\t1\t412\t3.1,250.4,3_3_4\n1\t2\t77\n2\t0.5,0,\n\n", "", {
        ("412", "413"): ":1: word id 413",
        ("3.1,", "x,"): ":2: a graph cost is 'x'",
        ("3_3_4", "3_3_"): ":2: the weight",
        ("1\t2\t77", "1\t2\t77\t77\t1,2"): ":3: compact and plain",
        ("1\t2\t77", "1\t2\t77\t77\t77\t77"): ":3: '1",
        ("1\t2\t77", "1\t999999999\t77"): ":4: 1000000000 states for",
        ("zed1 ", "zed1 x"): ":1: 'x' after the key",
    }),
    ("openfst", "x.fst.txt", "%s", "", {
        "": ": empty",
        "0 1 a a 1\n1 x\n": ":2: a weight is 'x'",
        "0 1 a a 1 1\n": ":1: 6 columns",
        "0 1 a a 1,2\n": ":1: the weight '1,2' has several parts; read lattices of Kaldi as kaldi",
        "0 1 a a 1\n1\n1 2\n": ":3: state 1 is final a second time",
        "0 99999999 a a 1\n": ": 100000000 states for",
    }),
    ("plf", "x.plf", "%s", "", {
        "((('a', -1, 1),),": ":1: '' at character 18",
        "((('a', -1, 1),),) x": ":1: 'x' at character 20",
        "((('a', -1, 2),),)": ":1: an arc leads behind the end",
        "((('a', -1, 0),),)": ":1: the arc of 'a' leads nowhere",
        "((('a', -1, 1.5),),)": ":1: a distance is '1.5'",
        "((('a', x, 1),),)": ":1: a score is 'x'",
        "((('a b', -1, 1),),)": ":1: the word 'a b' is empty or holds white space",
        "((('a, -1, 1),),)": ':1: "(\'a, -1, 1),),)" at character 3',
        "__import__('os')": ':1: "__import__(\'os\')" at character 1',
    }),
    ("pocketsphinx", "x.lat",
     "# -logbase 1.0003\nFrames 9\nNodes 2\n0 <s> 0 1 2 ; 0\n1 a 3 4 5 ; 0\n"
     "Initial 0\nFinal 1\nEdges\n0 1 -99\nEnd\n", "", {
        ("Nodes 2", "Nodes 3"): ": Nodes 3, but there are 2",
        ("Final 1\n", ""): ": no line 'Final'",
        ("Initial 0", "Initial 9"): ": node 9, but there are 2",
        ("0 1 -99", "0 7 -99"): ":9: node 7",
        ("0 1 -99", "0 1"): ":9: 2 fields",
        ("0 1 -99", "0 1 x"): ":9: a score is 'x'",
        ("1 a", "7 a"): ":5: '7 a",
        ("1.0003", "1"): ": -logbase 1;",
        ("Frames", "what\nFrames"): ":2: 'what'",
    }),
    ("wcn", "x", "%s", "", {
        "a:0": ":1: 'a:0' is not word:slot",
        "a:0:x": ":1: a posterior is 'x'",
        "a:0:-1": ":1: a posterior is -1; expected a probability",
        "a:1:1 b:0:1": ":1: 'b:0:1' comes after slot 1; sort the line",
        ":0:1": ":1: ':0:1' is not word",
        "a:x:1": ":1: a slot is 'x'",
    }),
]
# (format, content, what is said)
OPTIONS = [
    ("fairseq:lenpen=x", "H-0\t-1\ta", "lenpen: the power of the length is 'x'"),
    ("fairseq:lenpen=99", "H-0\t-1\ta", ":1: no search divides"),
    ("fairseq:normalised=maybe", "H-0\t-1\ta", "normalised=maybe"),
    ("fairseq:bpe=gpt2", "H-0\t-1\ta", "bpe=gpt2: no such subword marks"),
    ("moses", "0 ||| a\n3 ||| b\n1 ||| c\n", ":3: sentence 1 follows 3; sort"),
    ("stsb", "", ": holds no sentence pair; give"),
    ("tsv:columns=score+left+right", "1\ta\n",
     ":1: 2 fields; expected score, left, right, with tabs"),
    ("tsv:columns=left+score", "a\tb\n", ": columns=left+score; give left, right"),
    ("tsv:columns=left+right+right", "a\tb\n", ": columns=left+right+right; give left, right"),
    ("tsv:columns=left+right+words", "a\tb\n", ": columns=left+right+words; give left, right"),
    ("openfst:symbols={}/words.txt", "0 1 9 9 1\n", ":1: label 9 is not in"),
    ("sick:set=dev", "pair_ID\tsentence_A\tsentence_B\tSemEval_set\n1\ta b\tc\tTRAIN\n",
     ": set=dev; expected train, trial, test"),
    ("sick:set=trial", "pair_ID\tsentence_A\tsentence_B\tSemEval_set\n1\ta b\tc\tTRAIN\n",
     ": set=trial: holds no sentence pair; give"),
    ("sick", "pair_ID\tsentence_A\tsentence_B\n1\ta\tb\t1\n",
     ":2: 4 fields below a header of 3; give"),
]
# fmt: on


def one(text="x", utt="a", extra=None, **scores):
    """A list of one hypothesis."""
    return NBest(utt, (Hypothesis(text, scores, extra or {}),))


def of_systems(*names, utt="1", text="x", **more):
    """A list with a hypothesis of each system."""
    hyps = [Hypothesis(text, {**{f"system:{n}": float(n == name) for n in names}, **more},
                       {"system": name}) for name in names]  # fmt: skip
    return NBest(utt, tuple(hyps))


BESIDE = one(utt="b")
# (formats, lists, what is said)
# fmt: off
WRITE = [
    ("jsonl", [NBest("a", ()), NBest("a", ())], "second time"),
    ("jsonl kaldi-text", [one(utt="a b")], "white space"),
    ("jsonl kaldi-text", [one(utt="")], "is empty"),
    ("kaldi-text", [one(utt="a\tb")], "white"), ("kaldi-text", [one(utt="a\u2028b")], "white"),
    ("kaldi-text", [one(utt="\ufeffa")], "byte-order mark"),
    ("jsonl", [one(am=math.nan)], "is nan"), ("jsonl", [one(am=math.inf)], "is inf"),
    ("jsonl", [one(**{"a m": 1.0})], "score name"), ("jsonl", [one("\ud800")], "surrogate"),
    ("jsonl", [NBest("b", (), "\udfff")], "surrogate"),
    ("jsonl", [NBest("b", (*one(am=1.0).hyps, *one().hyps))], "hypothesis 2 has scores (none)"),
    ("trn ctm kaldi-text", [NBest("a", one().hyps * 2)], "more; cut the lists with --depth 1"),
    ("ctm", [one(utt=";;a")], "starts a comment"), ("ctm", [one("<ALT_END>")], "is markup"),
    ("trn", [one(utt="a(b")], "'a(b'"), ("trn", [one(utt="a)")], "'a)'"),
    ("trn", [one("{ x }")], "markup"), ("trn", [one("x @")], "markup"),
    ("trn", [one(utt="a b")], "white space"),
    ("espnet2 hyporadise", [one(am=-1.0, lm=-2.0)], "'a': has the scores am, lm"),
    ("mlm", [one(lm=-3.0)], "has the scores lm"),
    ("icefall kaldi-nbest:words_text", [one(am=1.0)], "scores am, and this format holds none"),
    ("fairseq", [one("")], "has no score"), ("fairseq", [one("", am=1.7e308)], "too large"),
    ("fairseq", [one("", am=-1.0, lm=-1.0)], "this format holds one"),
    *(("kaldi-nbest", [one(**{name: 1.0})], "no place in Kaldi's archives")
      for name in ("withlm", "nolm", "a/b", "a.gz", ".scp", "x" * 70, "a\0b")),
    ("kaldi-nbest", [one(extra={"ali": "1 x"})], "expected integers"),
    ("moses marian", [one("a ||| b")], "&#124;"), ("moses", [one("a", **{"x|||y": 1})], "&#124;"),
    ("moses", [NBest("zed", ())], "utterance 'zed': has no hypothesis"),
    ("srilm", [one(d0=-1.0), BESIDE], "has scores (none), earlier ones d0"),
    ("srilm", [one(d0=-1.0), one(utt="b", d0=-1.0)], "utterance 'a': has the scores d0"),
    ("srilm:version=1", [one(am=-1.0, lm=-1.0)], "utterance 'a': has the scores am, lm"),
    ("srilm:version=2", [one(am=-1.0)], "has no times for its words"),
    ("srilm:version=3", [one(am=-1.0)], "version=3"),
    *(("srilm", [one(utt=utt, am=-1.0), one(utt="c", am=-1.0)], "cannot name a file; rename it")
      for utt in ("a/b", "a\0b", "b\x1b[2J", ".b", "b" * 300)),
    ("systems", [one(utt="1")], "lacks hypotheses with the extra `system`"),
    ("systems", [NBest("1", ())], "lacks hypotheses"),
    ("systems", [of_systems("a", "b"), NBest("2", of_systems("a", "b").hyps[:1])],
     "utterance '2': has not one hypothesis of each system"),
    ("systems", [of_systems("a", "b", utt="zed")],
     "utterance 'zed': is not called by its line number, 1; write with ids=kaldi"),
    ("systems:d,e,f", [of_systems("a", "b")], "3 files for 2 systems"),
    ("systems", [one(utt="1", extra={"system": "a"}, am=-1.0)], "utterance '1': has the scores am"),
    ("systems", [one(utt="1", extra={"system": "../a"})], "cannot name a file"),
]
# fmt: on
PLACES = {"words_text": "words_text", "d,e,f": "d,e,f"}


@pytest.mark.parametrize(
    ("spec", "file", "content", "said"),
    [
        pytest.param(spec, file, (template, case), first + then, id=f"{spec}-{str(case)[:60]!r}")
        for spec, file, template, first, cases in READ
        for case, then in cases.items()
    ]
    + [(spec, "f", ("%s", content), said) for spec, content, said in OPTIONS],
)
def test_refuses_to_read(tmp_path, spec, file, content, said):
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    path = laid(tmp_path / "in", file, *content)
    with pytest.raises(UserError) as caught:
        TARGETS[spec.partition(":")[0]].read(path, spec.replace("{}", str(tmp_path)))
    message = str(caught.value)
    assert message.removeprefix(str(path)).replace(f"{tmp_path}/in/", "").startswith(said)
    assert "; " in message and "\n" not in message


def laid(home, file: str, template, case):
    """A file or directory as READ says; of `systems`, the paths of its files with commas."""
    home.mkdir()
    if isinstance(template, str):
        if isinstance(case, tuple):
            assert case[0] in template
        content = template.replace(*case) if isinstance(case, tuple) else template % case
        (home / file).write_bytes(content.encode("utf-8", "surrogateescape"))
        return home / file
    files = template | dict(zip(case[::2], case[1::2], strict=True))
    for name, content in files.items():
        if content is not None:
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(content)
    return home if template else ",".join(str(home / name) for name in files)


@pytest.mark.parametrize(
    ("spec", "nbests", "said"),
    [(spec, nbests, said) for specs, nbests, said in WRITE for spec in specs.split()],
)
def test_refuses_to_write(tmp_path, spec, nbests, said):
    name, _, place = spec.partition(":")
    form = registry.find_format(name if place in PLACES else spec, FORMATS)
    path = ",".join(str(tmp_path / part) for part in PLACES.get(place, "out").split(","))
    with pytest.raises(UserError) as caught:
        form.write(nbests, path)
    assert said in str(caught.value) and "; " in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["jsonl", "espnet1", "hyporadise", "mlm", "moses", "ctm", "trn"])
def test_a_refused_list_leaves_the_old_file(tmp_path, name):
    path = tmp_path / "old"
    path.write_text("old")
    with pytest.raises(UserError):
        FORMATS[name].write([one(), one(utt="b c")], path)
    assert path.read_text() == "old" and [child.name for child in tmp_path.iterdir()] == ["old"]
