"""A downloaded receipt: the answer's signature, and the keys that verify both."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.reading import object_of, objects_of
from uamp.signatures import ReceiptCheck, check_receipt

RECEIPT_BYTES_MAX: Final = 1_000_000
"""The maximum size of a receipt file, in bytes."""

_BEGIN: Final = b'{"receipt":'
_LIST: Final = b'{"object":"list",'


class SavedReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a receipt; ``keys_given`` says whether the keys are the caller's."""

    check: ReceiptCheck
    keys_given: bool


def begins_receipt(line: bytes) -> bool:
    """Return whether a first line starts a receipt."""
    return line.startswith(_BEGIN)


def begins_receipts(line: bytes) -> bool:
    """Return whether a first line starts a list of receipts, as REST returns it."""
    return line.startswith(_LIST)


def check_receipts(text: bytes, keys: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Check a list of receipts, with those of work passed on; return their numbers by state.

    Raises ExportCutError if it is none, or one differs from what the server signed.
    """
    known = tuple(keys)
    states: Counter[str] = Counter()
    for receipt in objects_of(object_of(text, "The file").get("data"), "receipts"):
        for one in (receipt, *objects_of(receipt.get("delegated", []), "receipts")):
            if "amount" not in one:
                raise ExportCutError("The list is not one of receipts.", code="no_export")
            found = check_receipt(one, known)
            states[found.state] += 1
            if not found.is_good:
                detail = f"The receipt of {one.get('response_id')}: {found.detail}"
                raise ExportCutError(detail, code="export_changed")
    return dict(states)


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
