"""Find the mentions (`@name`) in a text. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from chat_app.folding import folded, normalized

if TYPE_CHECKING:
    from collections.abc import Iterable

# Letters of scripts that are written without spaces: a mention may stand between them, and a name
# in other letters ends before them.
JOINED: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u318f"
    r"\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    r"\uff66-\uffdc\U00020000-\U0003ffff"
)
MENTION: Final = re.compile(
    rf"(?<!(?![{JOINED}])[\w@/.])[@\uff20]"
    rf"([{JOINED}][\w.-]*|(?![{JOINED}])\w(?:(?![{JOINED}])[\w.-])*)"
)
_JOINED_START: Final = re.compile(f"[{JOINED}]")
# The same as in static/chat/store/mentions.js.
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def has_sign(text: str) -> bool:
    """Return whether a text has the sign of a mention, of either width."""
    return "@" in text or "\uff20" in text


def mentioned_names(text: str, names: Iterable[str]) -> set[str]:
    """Return those of these names that a text mentions outside code, folded.

    Where a script is written without spaces, the longest name that the letters begin with counts.
    """
    if not has_sign(text):
        return set()
    if "`" in text:
        text = _CODE.sub(" ", text)
    folded_names = {folded(name) for name in names}
    written = {name.rstrip(".-") for name in MENTION.findall(normalized("NFC", text))}
    return {name for word in written if (name := _matching_name(word, folded_names))}


def _matching_name(written: str, names: set[str]) -> str:
    """Return the known name that the letters after an @ are or begin with; '' if none."""
    name = folded(written)
    if name in names or _JOINED_START.match(written) is None:
        return name if name in names else ""
    return max(
        (candidate for candidate in names if name.startswith(candidate)), key=len, default=""
    )
