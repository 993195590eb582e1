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

    Raises ExportCutError if it is not such a list, or one differs from what the server signed.
    """
    all_keys = tuple(keys)
    states: Counter[str] = Counter()
    for receipt in objects_of(object_of(text, "The file").get("data"), "receipts"):
        for part in (receipt, *objects_of(receipt.get("delegated", []), "receipts")):
            if "amount" not in part:
                raise ExportCutError("The list does not contain receipts.", code="no_export")
            check = check_receipt(part, all_keys)
            states[check.state] += 1
            if not check.is_good:
                detail = f"The receipt of {part.get('response_id')}: {check.detail}"
                raise ExportCutError(detail, code="export_changed")
    return dict(states)


def check_saved_receipt(text: bytes, keys: Iterable[Mapping[str, Any]] = ()) -> SavedReceipt:
    """Check a receipt with the given keys or, without any, with those in the file.

    Raises ExportCutError if it is not a receipt, or differs from what the server and agent signed.
    """
    caller_keys = tuple(keys)
    if len(text) > RECEIPT_BYTES_MAX:
        raise ExportCutError("The file is too large for a receipt.", code="no_export")
    value = object_of(text, "The file")
    receipt, message, file_keys = value.get("receipt"), value.get("message"), value.get("keys", [])
    chat_id = value.get("chat_id")
    if (
        not isinstance(receipt, dict)
        or not isinstance(file_keys, list)
        or not isinstance(chat_id, str)
    ):
        raise ExportCutError("The file is not a receipt.", code="no_export")
    all_keys = caller_keys or tuple(key for key in file_keys if isinstance(key, dict))
    check = check_receipt(
        receipt, all_keys, chat_id=chat_id, message=message if isinstance(message, dict) else None
    )
    if not check.is_good or check.claims is None:
        raise ExportCutError(f"The receipt: {check.detail}", code="export_changed")
    return SavedReceipt(check=check, keys_given=bool(caller_keys))
