"""The Merkle tree of all signed log heads (docs/log-tree.md): its growth, proofs and checks.

``nodes`` reads and appends hashes, ``growth`` adds heads and signs checkpoints, ``proofs`` proves
that a head is in the tree and that the tree only grew, ``tiles`` has the hashes as tiles,
``cosigning`` takes the cosignatures of witnesses, and ``submission`` requests them; ``checking``
compares everything with the rows.
Synchronous. The heads themselves are in `chat_app.log`, the arithmetic in `uamp.transparency`.
"""
