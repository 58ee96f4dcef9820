"""References that cannot be of the hypotheses are told of by evaluate, tune and doctor alike; poor
recognition, other writing and few words are not.
"""

import json
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.evaluate.fit import advise_metric, are_costs, are_positive, measure_fit
from lmtools.text.scripts import find_spacing

SPEECH = "the old king said unto his men go up and take it's all we have seen before now"
WORDS = SPEECH.split()


def speak(count=40, errors=0.1, seed=1, depth=3):
    """References and lists in which each word is another one with a chance of `errors`."""
    rng = np.random.default_rng(seed)

    def mishear(ref):
        return [str(rng.choice(WORDS)) if rng.random() < errors else word for word in ref]

    refs = [list(rng.choice(WORDS, size=rng.integers(3, 14))) for _ in range(count)]
    return [(" ".join(ref), [" ".join(mishear(ref)) for _ in range(depth)]) for ref in refs]


def refer(change):
    """The same lists under other references."""
    pairs = speak()
    refs = change([ref for ref, _ in pairs])
    return [(ref, hyps) for ref, (_, hyps) in zip(refs, pairs, strict=True)]


WRONG = {
    "of other utterances": refer(lambda refs: refs[1:] + refs[:1]),
    "sorted": refer(sorted),
    "of five utterances each": refer(
        lambda refs: [" ".join(refs[i : i + 5] or refs[:5]) for i in range(len(refs))]
    ),
    "first words": refer(lambda refs: [ref.split()[0][:2] for ref in refs]),
    "ids of words": refer(lambda refs: [" ".join(f"{len(w)}9" for w in r.split()) for r in refs]),
    "in another language": refer(lambda refs: ["das ist " * len(r.split()[::2]) for r in refs]),
}
RIGHT = {
    "good": speak(),
    "six of ten words wrong": speak(errors=0.6, depth=1),
    "in another case": refer(lambda refs: [ref.upper() + " !" for ref in refs]),
    "in Chinese": [("今天 天气 很 好" * n, ["今天天气好" * n]) for n in range(1, 20)],
    "empty hypotheses": [(ref, hyps if len(ref) % 3 else [""]) for ref, hyps in speak()],
    "one hypothesis cut short": [(ref, [hyps[0][:9], *hyps]) for ref, hyps in speak()],
    "one reference for all": [("yes my king", ["yes my king", "no my king"])] * 30,
}  # fmt: skip


@pytest.mark.parametrize("name", [*WRONG, *RIGHT])
def test_what_is_possible(name):
    assert measure_fit((WRONG | RIGHT)[name]).possible == (name in RIGHT)


def test_few_words_say_nothing():
    assert measure_fit([]) is None and measure_fit(WRONG["of other utterances"][:4]) is None
    assert measure_fit([("a", ["b"])] * 10) is None


def write(path, pairs):
    rows = []
    for ref, hyps in pairs:
        scored = [{"text": text, "scores": {"am": -1.0 - n}} for n, text in enumerate(hyps)]
        rows.append({"utt": f"u{len(rows)}", "ref": ref, "hyps": scored})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    "command", ["doctor --nbest n", "tune --nbest n --out w", "evaluate --hyp n"]
)
@pytest.mark.parametrize("wrong", [False, True])
def test_every_verb_that_reads_references_tells(tmp_path, monkeypatch, capsys, command, wrong):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "n", WRONG["of other utterances"] if wrong else speak())
    assert main(split(command)) == (wrong and "doctor" in command)
    printed = "".join(capsys.readouterr())
    lines = [line for line in printed.splitlines() if "hardly the references" in line]
    assert len(lines) == wrong and all(len(line) < 500 for line in lines)
    if wrong:
        level = "error" if "doctor" in command else "warning"
        assert lines[0].startswith(f"{level}: n: ") and "times as long, WER of the best" in lines[0]


def test_texts_without_lists(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, side in (("ref", 0), ("hyp", 1)):
        lines = (pair[0] if side == 0 else pair[1][0] for pair in WRONG["of five utterances each"])
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    assert main(split("evaluate --ref ref --hyp hyp --plain")) == 0
    assert capsys.readouterr().err.startswith("warning: ref beside hyp: hardly the references")


def test_signs():
    rng = np.random.default_rng(1)
    gains, valid = -rng.integers(0, 5, size=(50, 4)), np.arange(4) < rng.integers(2, 5, (50, 1))
    noise = rng.normal(size=gains.shape)
    assert are_costs(noise - 3 * gains, valid, gains) is True
    assert are_costs(noise + 3 * gains, valid, gains) is False
    assert are_costs(noise, valid, gains) is None
    assert are_costs(-gains[:5], valid[:5], gains[:5]) is None
    assert are_positive(np.array([0.0, 3, 4])) and not are_positive(np.array([0.0, -3, 4]))
    assert not are_positive(np.zeros(4))


CHINESE = ["我们今天去公园散步，天气很好。", "这本书非常有意思，我推荐给你。"]
APART = ["我们 今天 去 公园 散步 ， 天气 很 好 。", "这 本 书 非常 有意思 ， 我 推荐 给 你 。"]
TEXTS = {
    "Chinese": CHINESE,
    "Chinese in characters": [" ".join(text) for text in CHINESE],
    "Chinese in words": APART,
    "short Chinese": ["打开灯", "关灯", "放音乐", "回家", "停止"],
    "Chinese with English": ["我今天去shopping mall买东西所以很累", "这个app的UI真的很nice我喜欢"],
    "Japanese": ["今日は天気がいいですね。", "ｶﾀｶﾅで書いてください"],
    "Thai": ["ข้าพเจ้าไปตลาดเพื่อซื้อผลไม้", "วันนี้อากาศดีมาก"],
    "a Thai sentence": ["ฉันไม่ไป"],
    "Lao": ["ຂ້ອຍບໍ່ໄປຕະຫຼາດ"],
    "Khmer": ["ខ្ញុំមិនទៅផ្សារទេ"],
    "Burmese": ["ကျွန်တော်ဈေးကိုမသွားဘူး"],
    "Burmese in words": ["ကျွန်တော် ဈေး ကို မ သွား ဘူး"],
    "Hindi": ["मैं कल जाऊंगा", "दिल की बात"],
    "Thai in words": ["ข้าพเจ้า ไป ตลาด เพื่อ ซื้อ ผลไม้", "วันนี้ อากาศ ดี มาก"],
    "Korean": ["오늘은 날씨가 좋네요", "저는 시장에 갑니다"],
    "German": ["Donaudampfschifffahrtsgesellschaftskapitän", "ja"],
    "English with a name": ["he said 你好 to all of us there and then", "the red fox"],
    "none": ["", "12 34 !"],
}
FOUND = {
    "Chinese": ("Chinese", False),
    "Chinese in characters": ("Chinese", True),
    "Chinese in words": ("Chinese", True),
    "short Chinese": ("Chinese", False),
    "Chinese with English": ("Chinese", False),
    "Japanese": ("Japanese", False),
    "Thai": ("Thai", False),
    "a Thai sentence": ("Thai", False),
    "Lao": ("Lao", False),
    "Khmer": ("Khmer", False),
    "Burmese": ("Burmese", False),
    "Burmese in words": ("Burmese", True),
    "Thai in words": ("Thai", True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_language_and_its_blanks(name):
    spacing = find_spacing(TEXTS[name])
    assert (spacing.language, spacing.blanks) == FOUND.get(name, (None, False))


@pytest.mark.parametrize(
    ("refs", "hyps", "metric", "advice"),
    [
        ("Chinese", "Chinese", "wer", "cer:blanks=no"),
        ("Chinese", "Chinese", "bleu", "bleu:tokenize=zh"),
        ("Chinese", "Chinese", "ter", "ter:normalized=yes,asian=yes"),
        ("Chinese", "Chinese", "bleu:tokenize=zh", None),
        ("Chinese", "Chinese", "chrf", None),
        ("Chinese", "Chinese", "cer", None),
        ("Chinese in words", "Chinese", "wer", "cer:blanks=no"),
        ("Chinese", "Chinese in characters", "cer", "cer:blanks=no"),
        ("Chinese in words", "Chinese in words", "cer", "cer:blanks=no"),
        ("Chinese in words", "Chinese in words", "wer", None),
        ("Japanese", "Japanese", "bleu", "bleu:tokenize=ja-mecab"),
        ("Japanese", "Japanese", "ter", "chrf"),
        ("Thai", "Thai", "bleu", "bleu:tokenize=char"),
        ("a Thai sentence", "a Thai sentence", "wer", "cer:blanks=no"),
        ("Burmese", "Burmese", "mer", "cer:blanks=no"),
        ("Chinese", "Chinese", "mer", None),
        ("Korean", "Korean", "wer", None),
    ],
)
def test_the_metric_to_take_is_named(refs, hyps, metric, advice):
    lines = list(advise_metric(TEXTS[refs], TEXTS[hyps], metric, "F"))
    assert [line.split("--metric ")[1] for line in lines] == [advice] * (advice is not None)
    assert all(line.startswith("warning: F: ") for line in lines)


def test_evaluate_tune_doctor_and_show_say_it(tmp_path, capsys):
    ref, hyp = tmp_path / "ref.txt", tmp_path / "n.jsonl"
    ref.write_text("".join(f"{i} {text}\n" for i, text in enumerate(CHINESE)))
    rows = (
        f'{{"utt": "{i}", "ref": "{text}", "hyps": [{{"text": "{text}", "scores": {{"am": -1}}}}]}}'
        for i, text in enumerate(CHINESE)
    )
    hyp.write_text("\n".join(rows) + "\n")
    commands = {
        "evaluate": ["--ref", ref, "--hyp", hyp],
        "tune": ["--nbest", hyp, "--out", tmp_path / "w"],
        "doctor": ["--nbest", hyp],
        "show": ["--nbest", hyp],
    }
    for verb, words in commands.items():
        assert not main([verb, *map(str, words)])
        said = capsys.readouterr()
        assert "Chinese without blanks" in said.out + said.err
        assert "--metric cer:blanks=no" in said.out + said.err
