"""Other servers: the reference (`webagents`) and LiteLLM's proxy, both from PyPI.

Each has its own virtual environment; nothing else in this repository needs them. Their locks are
`requirements.txt` and `requirements/interop/litellm-server.txt`, with hashes.
"""
