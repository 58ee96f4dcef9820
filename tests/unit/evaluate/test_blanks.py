"""Languages without blanks are found, and the metric to take is named."""

import pytest

from lmtools.cli import main
from lmtools.evaluate.blanks import advise_metric, find_spacing

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
        ("Chinese", "Chinese", "bleu:tokenize=intl", "bleu:tokenize=zh"),
        ("Chinese", "Chinese", "ter", "ter:normalized=yes,asian=yes"),
        ("Chinese", "Chinese", "bleu:tokenize=zh", None),
        ("Chinese", "Chinese", "bleu:tokenize=flores200", None),
        ("Chinese", "Chinese", "ter:normalized=yes,asian=yes", None),
        ("Chinese", "Chinese", "chrf", None),
        ("Chinese", "Chinese", "cer", None),
        ("Chinese in words", "Chinese", "wer", "cer:blanks=no"),
        ("Chinese", "Chinese in characters", "cer", "cer:blanks=no"),
        ("Chinese in words", "Chinese in words", "cer", "cer:blanks=no"),
        ("Chinese in words", "Chinese in words", "wer", None),
        ("Chinese in words", "Chinese in words", "cer:blanks=no", None),
        ("Japanese", "Japanese", "bleu", "bleu:tokenize=ja-mecab"),
        ("Japanese", "Japanese", "ter", "chrf"),
        ("Thai", "Thai", "bleu", "bleu:tokenize=char"),
        ("a Thai sentence", "a Thai sentence", "wer", "cer:blanks=no"),
        ("Burmese", "Burmese", "mer", "cer:blanks=no"),
        ("Chinese", "Chinese", "mer", None),
        ("Hindi", "Hindi", "wer", None),
        ("Korean", "Korean", "wer", None),
        ("German", "German", "bleu", None),
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
        "show": [hyp],
    }
    for verb, words in commands.items():
        assert not main([verb, *map(str, words)])
        said = capsys.readouterr()
        assert "Chinese without blanks" in said.out + said.err
        assert "--metric cer:blanks=no" in said.out + said.err
