"""A Python client for the server: chats, streamed answers, history, files, payments.

``Client`` is for asyncio, ``SyncClient`` for programs without it. The code both share is in
``state`` and in the modules without a socket; nothing else in ``uamp`` imports this folder.
"""

try:
    import httpx2 as _httpx2
    import websockets as _websockets
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        f"uamp.client needs {_missing.name}: pip install 'uamp-server-uamp[client]'",
        name=_missing.name,
    ) from None

from uamp.client.api import ServerApi
from uamp.client.chat import OpenChat
from uamp.client.client import Client
from uamp.client.errors import (
    AnswerCancelledError,
    AnswerFailedError,
    ClientError,
    ConflictError,
    ConnectionLostError,
    ExportCutError,
    InvalidRequestError,
    NoAnswerError,
    NotFoundError,
    NotPermittedError,
    OutcomeUnknownError,
    PaymentRefusedError,
    PaymentRequiredError,
    RateLimitError,
    TimedOutError,
    UnauthorizedError,
    UnavailableError,
)
from uamp.client.exports import ExportSummary, check_export
from uamp.client.state.answers import AgentAnswer, Piece
from uamp.client.sync import SyncChat, SyncClient, SyncTurn
from uamp.client.turn import AskedTurn

del _httpx2, _websockets

__all__ = [
    "AgentAnswer",
    "AnswerCancelledError",
    "AnswerFailedError",
    "AskedTurn",
    "Client",
    "ClientError",
    "ConflictError",
    "ConnectionLostError",
    "ExportCutError",
    "ExportSummary",
    "InvalidRequestError",
    "NoAnswerError",
    "NotFoundError",
    "NotPermittedError",
    "OpenChat",
    "OutcomeUnknownError",
    "PaymentRefusedError",
    "PaymentRequiredError",
    "Piece",
    "RateLimitError",
    "ServerApi",
    "SyncChat",
    "SyncClient",
    "SyncTurn",
    "TimedOutError",
    "UnauthorizedError",
    "UnavailableError",
    "check_export",
]
