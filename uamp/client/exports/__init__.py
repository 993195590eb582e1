"""Whether a file with a chat is whole, and its answers and log are as they were written.

``check`` takes the file; ``answers`` verifies the signatures of answers and receipts, ``log`` the
hash chain, and ``reading`` reads JSON. ``receipt`` takes a receipt that a person downloaded.
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
