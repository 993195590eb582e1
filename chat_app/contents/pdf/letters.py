"""The letters that a character code stands for: by a font's ToUnicode map, or glyph names.

Readers show a ligature as its letters, and some show the name of a glyph that they do not know.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import (
    Dictionary,
    Keys,
    Name,
    Reference,
    Unreadable,
    dictionaries,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chat_app.contents.pdf.document import PdfDocument
    from chat_app.contents.pdf.objects import Value

Longer = dict[int, int]
"""The letters of a code, by its last byte, where they are several."""

_CODES: Final = 256
_MAPS: Final = Keys(b"ToUnicode")
_ENCODINGS: Final = Keys(b"Differences")
_FONTS: Final = Keys(b"Encoding")
_SECTION: Final = re.compile(rb"beginbf(char|range)(.*?)(?:endbf|\Z)", re.DOTALL)
_MAPPED: Final = re.compile(rb"<([^<>]*+)>|[\[\]]")
_NOT_HEX: Final = re.compile(rb"[^0-9A-Fa-f]+")
_OF_CODE_POINT: Final = re.compile(rb"uni([0-9A-F]{4})|u([0-9A-F]{4,6})")
_CYRILLIC: Final = re.compile(rb"afii10(?:01[7-9]|0[2-9]\d|10\d|110)")
_ACCENTED: Final = {
    b"acute": b"A C E I L N O R S U Y Z a c e i l n o r s u y z",
    b"grave": b"A E I O U a e i o u",
    b"circumflex": b"A C E G H I J O S U W Y a c e g h i j o s u w y",
    b"dieresis": b"A E I O U Y a e i o u y",
    b"tilde": b"A I N O U a i n o u",
    b"ring": b"A U a u",
    b"caron": b"C D E L N R S T Z c d e l n r s t z",
    b"cedilla": b"C S c s",
    b"commaaccent": b"G K L N R S T g k l n r s t",
    b"macron": b"A E I O U a e i o u",
    b"ogonek": b"A E I U a e i u",
    b"breve": b"A G U a g u",
    b"dotaccent": b"C E G I Z c e g z",
    b"hungarumlaut": b"O U o u",
}
_PLAIN: Final = (
    b".notdef space nbspace exclam quotedbl numbersign dollar percent ampersand quotesingle"
    b" quoteright quoteleft parenleft parenright asterisk plus comma hyphen sfthyphen minus"
    b" period slash zero one two three four five six seven eight nine colon semicolon less"
    b" equal greater question at bracketleft backslash bracketright asciicircum underscore"
    b" grave braceleft bar braceright asciitilde exclamdown cent sterling fraction yen florin"
    b" section currency quotedblleft guillemotleft guilsinglleft guilsinglright endash dagger"
    b" daggerdbl periodcentered paragraph bullet quotesinglbase quotedblbase quotedblright"
    b" guillemotright ellipsis perthousand questiondown acute circumflex tilde macron breve"
    b" dotaccent dieresis ring cedilla hungarumlaut ogonek caron emdash AE ae OE oe Oslash"
    b" oslash Lslash lslash germandbls ordfeminine ordmasculine dotlessi dotlessj Eth eth Thorn"
    b" thorn Dcroat dcroat Euro brokenbar copyright registered trademark logicalnot degree"
    b" plusminus onesuperior twosuperior threesuperior mu onequarter onehalf threequarters"
    b" multiply divide partialdiff summation product radical infinity integral approxequal"
    b" notequal lessequal greaterequal lozenge Delta Omega Alpha Beta Gamma Epsilon Zeta Eta"
    b" Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho Sigma Tau Upsilon Phi Chi Psi alpha beta"
    b" gamma delta epsilon zeta eta theta iota kappa lambda nu xi omicron pi rho sigma sigma1"
    b" tau upsilon phi chi psi omega arrowleft arrowright arrowup arrowdown element"
)
_KNOWN: Final = {
    *_PLAIN.split(),
    *(base + accent for accent, bases in _ACCENTED.items() for base in bases.split()),
}
_LIGATURES: Final = {b"ff": 2, b"fi": 2, b"fl": 2, b"ffi": 3, b"ffl": 3}


def longer_codes(document: PdfDocument) -> Longer:
    """Return the number of letters of each code that stands for several in a font of a document."""
    return _Fonts(document).longer


def letters_of(name: bytes) -> int:
    """Return the most letters that a reader finds for a glyph of this name."""
    if len(name) == 1 or name in _KNOWN or _CYRILLIC.fullmatch(name):
        return 1
    if name in _LIGATURES:
        return _LIGATURES[name]
    if match := _OF_CODE_POINT.fullmatch(name):
        return _expansions().get(int(match[1] or match[2], 16), 1)
    # Unknown names are shown with their slash.
    return 1 + len(name)


def hex_bytes(digits: bytes) -> bytes:
    """Return the bytes of a hexadecimal string."""
    digits = _NOT_HEX.sub(b"", digits)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())


@cache
def _expansions() -> dict[int, int]:
    """Return the characters that readers show as several letters, such as ligatures."""
    of_all = ((code, unicodedata.normalize("NFKC", chr(code))) for code in range(0x10000))
    return {code: len(text) for code, text in of_all if len(text) > 1}


class _Fonts:
    """Reads what the fonts of a document say about codes."""

    def __init__(self, document: PdfDocument) -> None:
        self.longer: Longer = {}
        self._document = document
        self._maps: dict[Reference, list[bytes]] = {}
        for font in self._dictionaries(_MAPS):
            self._read(font)
        for texts in self._maps.values():
            for text in texts:
                _read_map(text, self.longer)
        self._read_names()

    def _dictionaries(self, keys: Keys) -> Iterator[Dictionary]:
        """Yield the dictionaries that may have one of these keys."""
        seen: set[int] = set()
        for _, _, about in self._document.objects_with(keys):
            if id(about) not in seen:
                seen.add(id(about))
                yield from dictionaries(about.value)

    def _read(self, font: Dictionary) -> list[bytes]:
        """Return the ToUnicode maps of a font."""
        maps = []
        for value in font.all(b"ToUnicode"):
            if isinstance(value, Reference):
                if value not in self._maps:
                    streams = map(self._document.decoded, self._document.definitions_of(value))
                    self._maps[value] = [text or b"" for text in streams]
                maps += self._maps[value]
        return maps

    def _read_names(self) -> None:
        """Read the names that encodings give to codes, where no ToUnicode map comes first."""
        covered: dict[int, set[int]] = {}
        for font in self._dictionaries(_FONTS):
            for value in font.all(b"Encoding"):
                for encoding in self._document.resolve(value):
                    if isinstance(encoding, Dictionary) and encoding.all(b"Differences"):
                        maps = self._read(font)
                        codes = set.intersection(*map(_mapped_codes, maps)) if maps else set()
                        covered[id(encoding)] = covered.get(id(encoding), codes) & codes
        for encoding in self._dictionaries(_ENCODINGS):
            for value in encoding.all(b"Differences"):
                for names in self._document.resolve(value):
                    self._read_differences(names, covered.get(id(encoding), set()))

    def _read_differences(self, names: Value, covered: set[int]) -> None:
        code = 0
        for item in names if isinstance(names, list) else ():
            values = self._document.resolve(item)
            if len(values) != 1:
                raise Unreadable
            match values[0]:
                case Name() as name:
                    letters = letters_of(name)
                    if letters > 1 and code not in covered:
                        last = code % _CODES
                        self.longer[last] = max(self.longer.get(last, 1), letters)
                    code += 1
                case int() as number:
                    code = number


def _mapped_codes(text: bytes) -> set[int]:
    """Return the codes of a byte that a map has."""
    codes: set[int] = set()
    for sources, _ in _entries(text):
        if all(len(source) == 1 for source in sources):
            codes.update(range(sources[0][0], sources[-1][0] + 1))
    return codes


def _read_map(text: bytes, longer: Longer) -> None:
    for sources, target in _entries(text):
        first, last = int.from_bytes(sources[0]), int.from_bytes(sources[-1])
        units = -(-len(target) // 2)
        before = _letters(target[:-2]) if units > 1 else 0
        start = int.from_bytes(target[-2:])
        if first >> 8 != last >> 8 or last < first:
            longest = max(
                (n for code, n in _expansions().items() if start <= code <= start + last - first),
                default=1,
            )
            letter_counts = dict.fromkeys(range(_CODES), before + longest)
        else:
            expansions = _expansions()
            letter_counts = {
                code & 0xFF: before + expansions.get(start + code - first, 1)
                for code in range(first, last + 1)
            }
        for code, letters in letter_counts.items():
            if letters > 1:
                longer[code] = max(longer.get(code, 1), letters)


def _letters(target: bytes) -> int:
    units = (int.from_bytes(target[at : at + 2]) for at in range(0, len(target), 2))
    return sum(_expansions().get(unit, 1) for unit in units)


def _entries(text: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    """Yield the entries of a map: a code or the ends of a range, and the text it stands for."""
    for section in _SECTION.finditer(text):
        of_range = section[1] == b"range"
        sources: list[bytes] = []
        in_array = False
        for token in _MAPPED.finditer(section[2]):
            if token[1] is None:
                in_array = token[0] == b"["
                if not in_array:
                    sources = []
                continue
            code = hex_bytes(token[1])
            if len(sources) < 1 + of_range:
                sources.append(code)
                continue
            if code:
                yield sources, code
            if not in_array:
                sources = []
