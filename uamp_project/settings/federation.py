"""The signed-envelope protocol between servers: this server's name, and limits of peers."""

import os

from uamp_project.settings.environment import integer, string, switch

# The host and port of the did:web names of this server and its agents; empty disables envelopes.
UAMP_FEDERATION_HOST = string("UAMP_FEDERATION_HOST")
# The tolerated clock difference of a peer, and so the maximum age of an envelope.
UAMP_ENVELOPE_SKEW_SECONDS = integer("UAMP_ENVELOPE_SKEW_SECONDS", 300, minimum=1, maximum=3600)
# How long envelope ids are stored, so that repeats are detected.
UAMP_ENVELOPE_HOURS = integer("UAMP_ENVELOPE_HOURS", 24, minimum=3, maximum=24 * 365)
UAMP_ENVELOPES_PER_MINUTE = integer("UAMP_ENVELOPES_PER_MINUTE", 600)
UAMP_ENVELOPE_STREAMS = integer("UAMP_ENVELOPE_STREAMS", 64, minimum=1)
# A stream whose window stays full for this long ends; it can be resumed.
UAMP_ENVELOPE_STALL_SECONDS = integer("UAMP_ENVELOPE_STALL_SECONDS", 30, minimum=1, maximum=3600)
# Whether to accept digests over sorted JSON besides those over RFC 8785.
UAMP_ENVELOPE_SORTED_JSON = switch("UAMP_ENVELOPE_SORTED_JSON", "1")

# grpcio cannot require TLS 1.3 (envelope §6.1). This suite is the only one that it offers for
# TLS 1.2, and does not work without a shared key. grpcio reads the variable when it is imported,
# which happens later.
os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "ECDHE-PSK-CHACHA20-POLY1305")

# Where `serve` also listens for peers with TLS, as [HOST:]PORT; empty: nowhere.
UAMP_PEERS_ADDRESS = string("UAMP_PEERS_ADDRESS")
# The certificate and key of that address and of `peers`, as PEM files. Without them, the server
# makes its own in DATA_DIR/peers.
UAMP_PEERS_CERTIFICATE = string("UAMP_PEERS_CERTIFICATE")
UAMP_PEERS_KEY = string("UAMP_PEERS_KEY")
# Certificates, as a PEM file, that peers may have besides those of public authorities.
UAMP_PEER_CA_FILE = string("UAMP_PEER_CA_FILE")
# Whether peers in UAMP_REMOTE_ALLOW_HOSTS may be at http:// on a loopback address.
UAMP_PEER_LOOPBACK_HTTP = switch("UAMP_PEER_LOOPBACK_HTTP", "0")
# The most QUIC connections to the ports of peers of a process; over TCP, its open files limit them.
UAMP_QUIC_CONNECTIONS = integer("UAMP_QUIC_CONNECTIONS", 1000, minimum=1)

# The header in which the proxies of UAMP_TRUSTED_PROXIES name the host in a client's certificate.
UAMP_CLIENT_CERTIFICATE_HEADER = string("UAMP_CLIENT_CERTIFICATE_HEADER")

# The address of each process's gRPC server of envelopes, such as 0.0.0.0:50051; empty disables it.
UAMP_GRPC_ADDRESS = string("UAMP_GRPC_ADDRESS")
# Its certificate and key, as PEM files. Without them, it listens only on a loopback address.
UAMP_GRPC_CERTIFICATE = string("UAMP_GRPC_CERTIFICATE")
UAMP_GRPC_KEY = string("UAMP_GRPC_KEY")
# The authorities, as a PEM file, one of which has to have issued the certificate of each client.
UAMP_GRPC_CLIENT_CA = string("UAMP_GRPC_CLIENT_CA")
# The most calls on one connection, and on all connections of a process.
UAMP_GRPC_STREAMS = integer("UAMP_GRPC_STREAMS", 64, minimum=1)
UAMP_GRPC_CALLS = integer("UAMP_GRPC_CALLS", 1000, minimum=1)
