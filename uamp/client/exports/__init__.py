"""Verifies that an exported chat is complete and its answers and log are unchanged.

``check`` reads the file; ``answers`` verifies the signatures of answers and receipts, ``log`` the
hash chain; ``json_form`` splits a JSON export into parts, and ``reading`` parses them. ``receipt``
verifies a downloaded receipt, ``message`` an answer or the proof of a single message.
"""

from uamp.client.exports.check import ExportCheck, ExportSummary, check_export
from uamp.client.exports.message import (
    ProvenMessage,
    begins_message,
    begins_proof,
    check_message_proof,
    check_saved_message,
)
from uamp.client.exports.receipt import (
    SavedReceipt,
    begins_receipt,
    begins_receipts,
    check_receipts,
    check_saved_receipt,
)
from uamp.client.exports.shared_page import CheckedPage, begins_shared_page, check_shared_page

__all__ = [
    "CheckedPage",
    "ExportCheck",
    "ExportSummary",
    "ProvenMessage",
    "SavedReceipt",
    "begins_message",
    "begins_proof",
    "begins_receipt",
    "begins_receipts",
    "begins_shared_page",
    "check_export",
    "check_message_proof",
    "check_receipts",
    "check_saved_message",
    "check_saved_receipt",
    "check_shared_page",
]
