"""The Merkle tree of a server's signed log heads, and its proofs (docs/log-tree.md).

``tree`` has the arithmetic of RFC 9162, ``notes`` the signed checkpoints of C2SP with the
cosignatures of witnesses, ``proofs`` the proof that a log head is in the tree. Needs
`cryptography`; nothing here reads rows or uses the network.
"""
