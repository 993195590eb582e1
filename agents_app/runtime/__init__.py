"""One run of an agent: from its row and a request to UAMP events, built on `uap` and `upp`.

`providers` decides which model answers; `tools` and `mcp` implement its tools.
"""
