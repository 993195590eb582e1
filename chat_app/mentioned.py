"""Find the mentions (`@name`) in a text. Pure."""

from __future__ import annotations

import re
from typing import Final

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
# The same as in static/chat/store/mentions.js.
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def mentioned_names(text: str) -> set[str]:
    """Return the names mentioned outside code in a text, in lower case."""
    if "`" in text:
        text = _CODE.sub(" ", text)
    return {name.rstrip(".-").casefold() for name in MENTION.findall(text)}
