"""Servers of others: the reference (`webagents`) and LiteLLM's proxy, both of PyPI.

Each has a virtual environment of its own, and nothing else of this repository needs it. Their locks
are `requirements.txt` and `litellm.txt`, with hashes.
"""
