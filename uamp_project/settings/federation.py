"""The signed-envelope protocol between servers: the name of this one, and what peers may send."""

import os

from uamp_project.settings.environment import integer, switch

# The host, with its port, of the did:web names of this server and its agents; none: no envelopes.
UAMP_FEDERATION_HOST = os.environ.get("UAMP_FEDERATION_HOST", "")
# By how much the clock of a peer may differ: an envelope is as old at most.
UAMP_ENVELOPE_SKEW_SECONDS = integer("UAMP_ENVELOPE_SKEW_SECONDS", 300, least=1, most=3600)
# How long ids of envelopes are remembered: in this time a repeat is found.
UAMP_ENVELOPE_HOURS = integer("UAMP_ENVELOPE_HOURS", 24, least=3, most=24 * 365)
UAMP_ENVELOPES_PER_MINUTE = integer("UAMP_ENVELOPES_PER_MINUTE", 600)
UAMP_ENVELOPE_STREAMS = integer("UAMP_ENVELOPE_STREAMS", 64, least=1)
# A stream whose window stays full for so long ends; it can be resumed.
UAMP_ENVELOPE_STALL_SECONDS = integer("UAMP_ENVELOPE_STALL_SECONDS", 30, least=1, most=3600)
# Whether digests over sorted JSON are accepted beside those over RFC 8785.
UAMP_ENVELOPE_SORTED_JSON = switch("UAMP_ENVELOPE_SORTED_JSON", "1")

# Where a gRPC server of envelopes listens in each process, as 0.0.0.0:50051; none: there is none.
UAMP_GRPC_ADDRESS = os.environ.get("UAMP_GRPC_ADDRESS", "")
# Its certificate and key, PEM files. Without them it listens on a loopback address alone.
UAMP_GRPC_CERTIFICATE = os.environ.get("UAMP_GRPC_CERTIFICATE", "")
UAMP_GRPC_KEY = os.environ.get("UAMP_GRPC_KEY", "")
# Calls of one connection, and of all connections of a process.
UAMP_GRPC_STREAMS = integer("UAMP_GRPC_STREAMS", 64, least=1)
UAMP_GRPC_CALLS = integer("UAMP_GRPC_CALLS", 1000, least=1)
