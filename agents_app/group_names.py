"""The names by which people address everyone in a chat: no person and no agent has one."""

from typing import Final

GROUP_NAMES: Final = frozenset({"all", "everyone", "here"})
