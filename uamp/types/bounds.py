"""The numbers of the wire and their bounds.

A number that a client sends outside of its bounds is refused by the decoder as ``invalid_event``.
A field of an event has one of these types, and never a bare ``int`` or ``float``: a test walks
through all events and fails for a number without both bounds.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

LARGEST: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

MAX_TOKENS: Final = 1_000_000
"""The most tokens that one response may be asked for (UAMP §5.12)."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
"""How many, or how large: from nothing on."""

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
"""How many, where there is at least one."""

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOKENS)]
"""The tokens that a model may write."""

Quantity: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
"""A measured size or an amount that is shown: from nothing on."""

Time: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
    | Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
)
"""A moment or a length of time, in the unit that its field names."""

Percent: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=0, le=100)] | Annotated[float, msgspec.Meta(ge=0, le=100)]
)
"""A part of a hundred."""

Temperature: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=2)]
"""How freely a model chooses its words (UAMP §5.12)."""

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A part of one, such as the loudness that counts as speech."""

Speed: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=10)]
"""How fast a voice speaks; 1 is its own speed."""

Pitch: TypeAlias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
"""How high a voice speaks; 0 is its own pitch."""

Penalty: TypeAlias = Annotated[float, msgspec.Meta(ge=-2, le=2)]
"""How much a model avoids words that it used before."""

Bias: TypeAlias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
"""How much more, or less, often a model chooses one token."""

Seed: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What a model draws its choices from: the same seed, where a vendor can, the same answer."""

Emoji: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
"""One emoji, as Unicode defines its sequences (UTS #51)."""

Identifier: TypeAlias = Annotated[str, msgspec.Meta(max_length=128)]
"""The id of a person, chat or call that a client names."""

Amount: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^(?:(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?)?$", max_length=20)
]
"""A decimal string of money, or an empty one for none."""

Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=20)]
"""How often in a row agents may ask each other."""

Messages: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""How many messages of a chat an agent is shown."""
