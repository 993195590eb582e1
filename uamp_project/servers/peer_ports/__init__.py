"""The ports for peers: Hypercorn over TCP and QUIC, with limits that it does not have itself."""
