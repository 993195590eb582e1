"""Signed answers and receipts: their claims and their verification (docs/signatures.md).

It needs `rfc8785` and `pyjwt[crypto]`, which the extra `client` installs; the rest of `uamp` does
not import it. Keys are JSON Web Keys that the caller has read: nothing here reads files or uses the
network.
"""

from uamp.signatures.canonical import canonical, sha256_of, text_sha256
from uamp.signatures.claims import (
    RECEIPT_TYPE,
    RECEIPTS,
    SHARED_TYPE,
    SHARES,
    TYPE,
    AnswerClaims,
    Price,
    ReceiptClaims,
    SharedPageClaims,
    agent_owner,
    output_of,
    request_of,
)
from uamp.signatures.jws import ALGORITHMS, BadSignature, UnknownKey, open_signature
from uamp.signatures.receipts import ReceiptCheck, check_receipt
from uamp.signatures.trust import SignatureState, distrust
from uamp.signatures.verification import SignatureCheck, check_answer, with_question

__all__ = [
    "ALGORITHMS",
    "RECEIPTS",
    "RECEIPT_TYPE",
    "SHARED_TYPE",
    "SHARES",
    "TYPE",
    "AnswerClaims",
    "BadSignature",
    "Price",
    "ReceiptCheck",
    "ReceiptClaims",
    "SharedPageClaims",
    "SignatureCheck",
    "SignatureState",
    "UnknownKey",
    "agent_owner",
    "canonical",
    "check_answer",
    "check_receipt",
    "distrust",
    "open_signature",
    "output_of",
    "request_of",
    "sha256_of",
    "text_sha256",
    "with_question",
]
