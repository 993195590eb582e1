"""Decoding of a table's file, in whichever encoding it was saved.

Such a file does not declare its encoding. An encoding that fits and yields plausible language is
used and named to the reader, the only one who can confirm it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_SAMPLE_CHARS = 2000
_PLAUSIBLE = 0.6
_SURE_CHARS = 12
_CLOSE = 0.2
_ACCENTS = re.compile(r"[^\x00-\x7f]+")
# Russian letters in words of one case or with a capital: mojibake mixes the cases.
_WORDS = re.compile(r"(?<![\u0400-\u04ff])[А-ЯЁ]?(?:[а-яё]{2,}|[А-ЯЁ]+)(?![\u0400-\u04ff])")  # noqa: RUF001


class DecodedText(NamedTuple):
    """Decoded text; `encoding` is a display name if it had to be guessed, else ''."""

    text: str
    encoding: str
    is_sure: bool = True


class _Encoding(NamedTuple):
    """An encoding, and a measure of how plausible a text in it is for its languages."""

    codec: str
    name: str
    likeness: Callable[[str], float]


def detect(data: bytes) -> DecodedText | None:
    """Decode bytes; return None if they are not text in any encoding."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) and not data.startswith(b"\xff\xfe\0\0"):
        text = _decoded(data, "utf-16")
        return None if text is None else DecodedText(text, "")
    if b"\0" in data:
        return _wide(data)
    if (text := _decoded(data, "utf-8-sig")) is not None:
        return DecodedText(text, "")
    candidates = [
        (encoding.likeness(text), encoding.name, text)
        for encoding in _ENCODINGS
        if (text := _decoded(data, encoding.codec)) is not None
    ]
    if not candidates:
        return None
    likeness, name, text = max(candidates, key=lambda candidate: candidate[0])
    if likeness >= _PLAUSIBLE:
        rivals = sum(candidate[0] > likeness - _CLOSE for candidate in candidates)
        return DecodedText(text, name, is_sure=rivals == 1)
    latin = next(((name, text) for _, name, text in candidates if name == _LATIN), None)
    return None if latin is None else DecodedText(latin[1], latin[0], is_sure=False)


def _wide(data: bytes) -> DecodedText | None:
    """Decode UTF-32, or UTF-16 without its mark; only these have bytes of value zero in text."""
    for codec, name in _WIDE:
        text = _decoded(data, codec)
        if text is not None and "\0" not in text and any(sign in text for sign in ",;\t|\n"):
            return DecodedText(text.removeprefix("\ufeff"), name)
    return None


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _foreign(text: str) -> list[str]:
    """Return the first characters that are not ASCII."""
    return [c for run in _ACCENTS.findall(text[: 100 * _SAMPLE_CHARS]) for c in run][:_SAMPLE_CHARS]


def _double_byte(
    codec: str, first: range, *, trail: int, script: str = ""
) -> Callable[[str], float]:
    """Return a measure of the share of frequent characters in an East Asian encoding.

    Their first byte is in a range and their second is at least `trail`, since each standard lists
    frequent characters first. Full-width signs and those of a `script` count too. Half-width kana
    count less, because each of their bytes is also part of Chinese and Korean text.
    """

    def likeness(text: str) -> float:
        foreign = _foreign(text)
        frequent = 0.0
        for c in foreign:
            bytes_ = c.encode(codec)
            is_frequent = len(bytes_) == 2 and bytes_[0] in first and bytes_[1] >= trail  # noqa: PLR2004
            if is_frequent or c in script or c in _SIGNS:
                frequent += 1
            elif script and c in _HALF_WIDTH:
                frequent += _PLAUSIBLE
        return frequent / len(foreign) if foreign else 0.0

    return likeness


def _hangul(text: str) -> float:
    """Return the share of frequent Korean syllables: Chinese bytes decode to rare ones."""
    foreign = _foreign(text)
    often = sum(_is_frequent_syllable(c) or c in _SIGNS for c in foreign)
    return often / len(foreign) if foreign else 0.0


def _is_frequent_syllable(c: str) -> bool:
    index = ord(c) - 0xAC00
    if not 0 <= index < 11_172:  # noqa: PLR2004 the syllables of Unicode
        return False
    initial, vowel, final = index // 588, index % 588 // 28, index % 28
    if vowel in _RARE_VOWELS or initial in _TENSE:
        return final in _OPEN and vowel not in _NEVER
    return final in _FINALS


def _chinese(text: str) -> float:
    """Return the share of frequent characters; Korean uses only the first half of the bytes."""
    share, foreign = _FREQUENT_CHINESE(text), _foreign(text)
    is_half = not any(c.encode("gb18030")[0] > _LAST_OF_KOREAN for c in foreign)
    return share * _HALF if is_half and len(foreign) >= _SURE_CHARS else share


def _latin(text: str) -> float:
    """Return the share of accented letters and signs that stand alone or in pairs."""
    runs = _ACCENTS.findall(text[: 100 * _SAMPLE_CHARS])[:_SAMPLE_CHARS]
    total = sum(map(len, runs))
    return sum(len(run) for run in runs if len(run) <= 2) / total if total else 0.0  # noqa: PLR2004


def _cyrillic(text: str) -> float:
    foreign = _foreign(text)
    words = _WORDS.findall(text[: 100 * _SAMPLE_CHARS])
    return min(1.0, sum(map(len, words)) / len(foreign)) if foreign else 0.0


_SIGNS = {chr(c) for c in (*range(0x3000, 0x3040), *range(0xFF01, 0xFF5F))}
_HALF_WIDTH = {chr(c) for c in range(0xFF61, 0xFFA0)}
_FREQUENT_CHINESE = _double_byte("gb18030", range(0xB0, 0xD8), trail=0xA1)
# By their indexes among the initials, vowels and finals of Hangul.
_TENSE = {1, 4, 8, 10, 13}
_RARE_VOWELS = {3, 10, 11, 15}
_NEVER = {3, 10}
_OPEN = {0, 4}
_FINALS = {0, 1, 4, 8, 16, 17, 19, 20, 21}
_LAST_OF_KOREAN = 0xC8
_HALF = 0.9
_WIDE = tuple((f"utf-{bits}-{end}", f"UTF-{bits}") for bits in (32, 16) for end in ("le", "be"))
_LATIN = "Windows-1252"
_KANA = "".join(map(chr, range(0x3041, 0x3100)))
_ENCODINGS = (
    _Encoding(
        "cp932", "Shift-JIS", _double_byte("cp932", range(0x88, 0x99), trail=0, script=_KANA)
    ),
    _Encoding("cp949", "EUC-KR", _hangul),
    _Encoding("gb18030", "GBK", _chinese),
    _Encoding("big5", "Big5", _double_byte("big5", range(0xA4, 0xC7), trail=0x40)),
    _Encoding("cp1252", _LATIN, _latin),
    _Encoding("cp1251", "Windows-1251", _cyrillic),
)
