"""Generates the published protocol documents: JSON Schemas, examples, docs/protocol (UAMP §15).

Everything comes from the types and tables; no fact is stated here.
"""
