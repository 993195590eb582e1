"""One run of an agent: from its row and a request to UAMP events, on `uap` and `upp`.

Which model answers is in `providers`; what its tools do is in `tools` and `mcp`.
"""
