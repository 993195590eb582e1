"""Decoding of bytes from the web.

Always produces text, quickly, whatever the bytes are and whatever they claim to be.
"""

import codecs
import re

# The encodings of the web. Python's others are slow or are not text encodings.
# fmt: off
_ENCODINGS = {
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "big5", "big5hkscs", "cp866", "cp874", "cp932",
    "cp949", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "koi8-r", "koi8-u",
    "mac-roman", "shift_jis",
    *(f"cp125{number}" for number in range(9)),
    *(f"iso8859-{number}" for number in (*range(2, 12), *range(13, 17))),
}
# fmt: on
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LABEL = re.compile(r"[\w.:-]{1,40}", re.ASCII)
_META = re.compile(
    rb"""<meta[^>]{0,300}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE
)
_META_BYTES = 2048


def decode(data: bytes, charset: str | None) -> str:
    """Decode bytes by the byte order mark, else the declared charset, else a `meta` tag.

    Invalid bytes become U+FFFD. The default is UTF-8, or windows-1252 if that fails.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    encoding = _encoding(charset)
    if encoding is None and (meta := _META.search(data[:_META_BYTES])):
        encoding = _encoding(meta[1].decode("ascii"))
        if encoding is not None and encoding.startswith("utf-16"):
            # The tag was read as ASCII, so this cannot be true.
            encoding = "utf-8"
    if encoding is not None:
        return data.decode(encoding, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _encoding(label: str | None) -> str | None:
    """Return Python's name for a web encoding, or None."""
    if label is None or not _LABEL.fullmatch(label):
        return None
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    # On the web, Latin-1 means windows-1252.
    name = "cp1252" if name in {"ascii", "iso8859-1"} else name
    return name if name in _ENCODINGS else None
