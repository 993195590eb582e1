"""Messages of the Agent Client Protocol: JSON-RPC 2.0, and the content of prompts."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

PROTOCOL_VERSION: Final = 1
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
PAYMENT_REQUIRED: Final = -32402

_CODES: Final = {
    400: INVALID_PARAMS,
    401: AUTH_REQUIRED,
    402: PAYMENT_REQUIRED,
    403: AUTH_REQUIRED,
    404: NOT_FOUND,
    409: INVALID_REQUEST,
    413: INVALID_PARAMS,
}
# Each response has one of them.
_ANSWERS: Final = frozenset({"result", "error"})
_UNREADABLE: Final = frozenset({ErrorCode.INVALID_JSON, ErrorCode.INVALID_TEXT})

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]
RpcId: TypeAlias = int | _Text | None


class Rpc(msgspec.Struct, frozen=True, kw_only=True):
    """A request, a notification (without `id`) or a response (without `method`)."""

    jsonrpc: Literal["2.0"]
    id: RpcId | msgspec.UnsetType = msgspec.UNSET
    method: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    result: Any = None
    error: dict[str, Any] | None = None


class RpcError(Exception):
    """The refusal of a request with a JSON-RPC code."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of(cls, error: RemoteProtocolError) -> RpcError:
        """Convert a UAMP error to the codes of JSON-RPC and ACP."""
        data: dict[str, Any] = {"code": str(error.code), **(error.details or {})}
        payment = data.pop("payment", None)
        if isinstance(payment, dict):
            data |= payment.get("context", {}) | {"payment": payment}
        code = _CODES.get(http_status(error.code), INTERNAL_ERROR)
        return cls(code, error.message, data)

    def body(self) -> dict[str, Any]:
        """Return the `error` member of a response."""
        members = {"code": self.code, "message": self.message}
        return members if self.data is None else {**members, "data": self.data}


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of parameters; unknown members are ignored."""

    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")
    # The spelling of spec/webagents-transports; ACP clients send it in `_meta`.
    payment_token: str | None = msgspec.field(default=None, name="payment_token")

    @property
    def token(self) -> str | None:
        """The client's payment token, in either place."""
        token = self.payment_token or (self.meta or {}).get("payment_token")
        return token if isinstance(token, str) else None


class InitializeParams(Params, frozen=True):
    """The capabilities of a client; clients of ACP itself send an integer version."""

    protocol_version: int | str | None = None

    @property
    def is_official(self) -> bool:
        """Whether the client speaks ACP itself rather than webagents' dialect."""
        return isinstance(self.protocol_version, int)


class NewSessionParams(Params, frozen=True):
    """The client's working directory; its MCP servers are not used."""

    cwd: Annotated[str, msgspec.Meta(max_length=4096)] | None = None


class ListSessionsParams(NewSessionParams, frozen=True):
    """The filter and the cursor of a list of sessions."""

    cursor: Annotated[str, msgspec.Meta(max_length=1024)] | None = None


class SessionParams(Params, frozen=True):
    """Parameters that name a session."""

    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Resource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of an embedded resource, as text or base64 data."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class Block(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A block of content."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str = ""
    data: str = ""
    mime_type: str = ""
    uri: str | None = None
    name: str | None = None
    resource: Resource | None = None


class PromptParams(SessionParams, frozen=True):
    """A prompt in a session."""

    prompt: Annotated[tuple[Block, ...], msgspec.Meta(min_length=1, max_length=100)]


class SubmitParams(Params, frozen=True):
    """A whole conversation (`prompt/submit`)."""

    messages: Annotated[tuple[uamp.Message, ...], msgspec.Meta(min_length=1, max_length=10_000)]


def read_rpc(frame: str | bytes) -> Rpc:
    """Parse the message in a frame; raises RpcError."""
    try:
        value = uamp.load_json(frame, uamp.DEFAULT_LIMITS)
    except RemoteProtocolError as error:
        code = PARSE_ERROR if error.code in _UNREADABLE else INVALID_REQUEST
        raise RpcError(code, error.message) from None
    try:
        message = msgspec.convert(value, Rpc)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"{error}.") from None
    named = set(value) if isinstance(value, dict) else set()
    if message.method is None and ("method" in named or not _ANSWERS & named):
        raise RpcError(INVALID_REQUEST, "A message needs a method, a result or an error.")
    return message


def inputs_of(blocks: tuple[Block, ...], session_id: str) -> list[uamp.InputEvent]:
    """Convert the blocks of a prompt to inputs; raises RpcError for a block without content."""
    return [_input_of(block, session_id) for block in blocks]


def _input_of(block: Block, session_id: str) -> uamp.InputEvent:
    form = block.mime_type.partition("/")[2]
    match block:
        case Block(type="text"):
            return uamp.InputText(session_id=session_id, text=block.text)
        case Block(type="image") if block.data:
            return uamp.InputImage(session_id=session_id, image=block.data, format=form or None)
        case Block(type="audio") if block.data:
            return uamp.InputAudio(
                session_id=session_id, audio=block.data, format=form or "wav", is_final=True
            )
        case Block(type="resource_link", uri=str(uri)):
            return uamp.InputText(session_id=session_id, text=f"[{block.name or uri}]({uri})")
        case Block(type="resource", resource=Resource(text=str(text), uri=uri)):
            return uamp.InputText(session_id=session_id, text=f"{uri}:\n{text}")
        case Block(type="resource", resource=Resource(blob=str(blob), uri=uri, mime_type=kind)):
            return uamp.InputFile(
                session_id=session_id,
                file=blob,
                filename=uri.rpartition("/")[2] or "resource",
                mime_type=kind or "application/octet-stream",
            )
        case _:
            raise RpcError(INVALID_PARAMS, f"A block of type {block.type} lacks its content.")
