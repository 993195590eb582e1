"""What is published about the protocol: JSON Schemas, worked examples, docs/protocol (UAMP §15).

Everything is generated from the types and tables; no fact is stated here.
"""
