"""Whether a file with a chat is whole, and its answers and log are as they were written.

``check`` takes the file; ``answers`` verifies the signatures of answers and receipts, ``log`` the
hash chain, and ``reading`` reads JSON.
"""

from uamp.client.exports.check import ExportCheck, ExportSummary, check_export

__all__ = ["ExportCheck", "ExportSummary", "check_export"]
