"""Batches that are paid by their headers: a 402 first, then the answer (x402, transports)."""
