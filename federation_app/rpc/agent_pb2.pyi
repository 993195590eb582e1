from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class EnvelopeRecord(_message.Message):
    __slots__ = ("envelope",)
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    envelope: bytes
    def __init__(self, envelope: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("stream_id", "delta_window", "repeated_envelope", "receivers")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    DELTA_WINDOW_FIELD_NUMBER: _ClassVar[int]
    REPEATED_ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    RECEIVERS_FIELD_NUMBER: _ClassVar[int]
    stream_id: str
    delta_window: int
    repeated_envelope: bool
    receivers: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, stream_id: _Optional[str] = ..., delta_window: _Optional[int] = ..., repeated_envelope: _Optional[bool] = ..., receivers: _Optional[_Iterable[bytes]] = ...) -> None: ...
