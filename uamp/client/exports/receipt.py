"""A downloaded receipt: the answer's signature, and the keys that verify both."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.reading import object_of
from uamp.signatures import ReceiptCheck, check_receipt

RECEIPT_BYTES_MAX: Final = 1_000_000
"""The maximum size of a receipt file, in bytes."""

_BEGIN: Final = b'{"receipt":'


class SavedReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a receipt; ``keys_given`` says whether the keys are the caller's."""

    check: ReceiptCheck
    keys_given: bool


def begins_receipt(line: bytes) -> bool:
    """Return whether a first line starts a receipt."""
    return line.startswith(_BEGIN)


def check_saved_receipt(text: bytes, keys: Iterable[Mapping[str, Any]] = ()) -> SavedReceipt:
    """Check a receipt with the given keys or, without any, with those in the file.

    Raises ExportCutError if it is not a receipt, or differs from what the server and agent signed.
    """
    given = tuple(keys)
    if len(text) > RECEIPT_BYTES_MAX:
        raise ExportCutError("The file is no receipt: it is too large.", code="no_export")
    value = object_of(text, "The file")
    receipt, message, own = value.get("receipt"), value.get("message"), value.get("keys", [])
    chat_id = value.get("chat_id")
    if not isinstance(receipt, dict) or not isinstance(own, list) or not isinstance(chat_id, str):
        raise ExportCutError("The file is no receipt.", code="no_export")
    known = given or tuple(key for key in own if isinstance(key, dict))
    found = check_receipt(
        receipt, known, chat_id=chat_id, message=message if isinstance(message, dict) else None
    )
    if not found.is_good or found.claims is None:
        raise ExportCutError(f"The receipt: {found.detail}", code="export_changed")
    return SavedReceipt(check=found, keys_given=bool(given))
