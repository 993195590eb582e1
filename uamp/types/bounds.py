"""The numbers on the wire and their bounds.

The decoder refuses a client's number outside its bounds as ``invalid_event``. Each number in an
event has one of these types, never a bare ``int`` or ``float``: a test walks through all events and
fails for a number without both bounds.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

LARGEST: Final = 2**53 - 1
"""The largest integer that every JSON reader represents exactly."""

MAX_TOKENS: Final = 1_000_000
"""The largest number of tokens that a request may allow one response (UAMP §5.12)."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
"""A count or size, from 0."""

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
"""A count of at least 1."""

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOKENS)]
"""The number of tokens that a model may write."""

Quantity: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
"""A measurement or an amount for display, from 0."""

Time: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
    | Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
)
"""A point in time or a duration, in the unit that its field states."""

Percent: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=0, le=100)] | Annotated[float, msgspec.Meta(ge=0, le=100)]
)
"""A percentage."""

Temperature: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=2)]
"""The sampling temperature of a model (UAMP §5.12)."""

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A fraction, such as the volume that counts as speech."""

Speed: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=10)]
"""The speed of a voice; 1 is its normal speed."""

Pitch: TypeAlias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
"""The pitch of a voice; 0 is its normal pitch."""

Penalty: TypeAlias = Annotated[float, msgspec.Meta(ge=-2, le=2)]
"""The penalty on tokens that the model has already used."""

Bias: TypeAlias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
"""The bias towards or against one token."""

Seed: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The random seed of a model: if the vendor supports it, the same seed gives the same answer."""

Emoji: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
"""One emoji, as Unicode defines its sequences (UTS #51)."""

Identifier: TypeAlias = Annotated[str, msgspec.Meta(max_length=128)]
"""The id of a person, chat or call that a client names."""

Amount: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^(?:(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?)?$", max_length=20)
]
"""A decimal string of money, or an empty one for none."""

Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=20)]
"""The number of times in a row that agents may ask each other."""

Messages: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""The number of a chat's messages that an agent receives."""
