"""Find the mentions (`@name`) in a text. Pure."""

from __future__ import annotations

import re
from typing import Final

MENTION: Final = re.compile(r"(?<![\w@/.])@([\w][\w.-]*)")
# The same as in static/chat/store/mentions.js.
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def mentioned_names(text: str) -> set[str]:
    """Return the names mentioned outside code in a text, in lower case."""
    if "`" in text:
        text = _CODE.sub(" ", text)
    return {name.rstrip(".-").casefold() for name in MENTION.findall(text)}
