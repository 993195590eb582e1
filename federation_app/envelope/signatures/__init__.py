"""Signatures (envelope §4.2, §6.3): keys, compact JWS, the canonical form and its digest."""
