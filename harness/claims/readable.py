"""Text as a reader sees it: markup gone, digits plain, decimals with a point, line by line.

Words of other languages for a metric or a split become the English ones, so that one reader is
enough. What is inside backticks stays, for code is not prose.
"""

import re

_WORDS = {
    "accuracy": r"genauigkeit|trefferquote|exactitude|exactitud|acurácia|accuratezza|doğruluk"
    r"|nauwkeurigheid|noggrannhet|точност\w*|准确率|準確率|正确率|准确度|精度|正解率|정확도",
    "error rate": "fehlerrate|fehlerquote|taux d['’]erreur|tasa de error|错误率|誤り率",
    "validation": r"validierung|validación|validação|validazione|валидаци\w*|验证集?|検証",
    "percent": r"prozent|pour ?cent|por ?ciento|процент\\w*|パーセント",
}
_ENGLISH = [
    (re.compile(rf"(?<![a-z])(?:{names})", re.I), f" {english} ")
    for english, names in _WORDS.items()
]
_LETTER = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_NO_SPACES = re.compile(rf"(?<={_LETTER})(?=\d)|(?<=\d)(?={_LETTER})")
_CODE = re.compile(r"(`+[^`\n]*`+)")
_BLOCK_TAG = r"(?:br|td|th|tr|p|div|li|hr)"
_INLINE_TAG = (
    r"(?:b|i|u|s|em|strong|span|sub|sup|small|big|mark|font|kbd|tt|code|ins|del|q|wbr|a|bdi|bdo)"
)
_FRACTIONS: dict[str, str] = {
    "\u00bc": "1/4",
    "\u00bd": "1/2",
    "\u00be": "3/4",
    "\u2153": "1/3",
    "\u2154": "2/3",
    **{chr(0x2155 + n): f"{n + 1}/5" for n in range(4)},
    "\u2159": "1/6",
    "\u215a": "5/6",
    **{chr(0x215B + n): f"{2 * n + 1}/8" for n in range(4)},
}
# In this order: later patterns read what earlier ones leave.
_CHANGES = tuple(
    (re.compile(pattern, re.I), put)
    for pattern, put in (
        (r"<img\b[^<>\n]*?\balt=[\"']([^\"'<>\n]*)[\"'][^<>\n]*>", r" \1 "),
        (rf"</?{_BLOCK_TAG}(?:\s[^<>\n]*)?/?>", " "),
        (rf"</?{_INLINE_TAG}(?:\s[^<>\n]*)?/?>", ""),
        (r"\\d?frac\s*\{\s*([\d.,]+)\s*\}\s*\{\s*([\d.,]+)\s*\}", r"\1/\2"),
        (r"\\(?:text|math)[a-z]*\s*\{([^{}\n]*)\}", r"\1"),
        (r"\{([.,\d]+)\}", r"\1"),
        (r"\\[(),;! ]|\\(?=[%.,_~-])", ""),
        (r"(?<![\w$])\$([^$\n]{1,99})\$(?!\w)", r" \1 "),
        (r"[\u00bc-\u00be\u2150-\u215e]", lambda match: f" {_FRACTIONS[match[0]]} "),
        (r"(?<=\d)[\u060c\u066b\u3002\uff0e\uff61](?=\d)", "."),
        (r"(?<![\d.,])0\s?[\u00b7\u2027\u2022\u2219\u22c5\u30fb]\s?(?=\d)", "0."),
        # A decimal comma; `0,1,2` is a list, and so is `0, 1`.
        (r"(?<![\w.,])0,(?=\d\d+(?![\d,]))", "0."),
        (r"(?<![\w.,])0\s+\.\s*(?=\d)", "0."),
    )
)
_FOOTNOTE = re.compile(r"(?m)^\[\^(?P<name>[\w-]+)\]:[ \t]*(?P<text>.*)$")
_SPLIT_NUMBER = re.compile(r"(?<![\w.,])0(\s*)\.(\s+)(?=\d)")


def readable(line: str) -> str:
    """One line without markup, outside of its code."""
    parts = _CODE.split(line)
    return "".join(part if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(part: str) -> str:
    for pattern, put in _CHANGES:
        part = pattern.sub(put, part)
    for pattern, english in _ENGLISH:
        part = pattern.sub(english, part)
    # Scripts without spaces: a number stands apart from its words.
    return part if part.isascii() else _NO_SPACES.sub(" ", part)


def with_footnotes(text: str) -> str:
    """The text with each footnote where it is called, on the same lines."""
    notes = {match["name"]: match["text"] for match in _FOOTNOTE.finditer(text)}
    if not notes:
        return text
    bare = _FOOTNOTE.sub("", text)

    def put(match: re.Match[str]) -> str:
        return f" ({notes[match[1]]})" if match[1] in notes else match[0]

    return re.sub(r"\[\^([\w-]+)\]", put, bare)


def joined_number(text: str) -> str:
    """`0.` and its digits on the next line as one number; of the same length."""
    return _SPLIT_NUMBER.sub(lambda match: f"{match[1]}{match[2]}0.", text)
