"""Verifies that an exported chat is complete and its answers and log are unchanged.

``check`` reads the file; ``answers`` verifies the signatures of answers and receipts, ``log`` the
hash chain, and ``reading`` parses JSON. ``receipt`` verifies a downloaded receipt.
"""

from uamp.client.exports.check import ExportCheck, ExportSummary, check_export
from uamp.client.exports.receipt import SavedReceipt, begins_receipt, check_saved_receipt

__all__ = [
    "ExportCheck",
    "ExportSummary",
    "SavedReceipt",
    "begins_receipt",
    "check_export",
    "check_saved_receipt",
]
