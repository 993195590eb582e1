"""The words of A2A 1.0 and 0.3: what their requests are, and tasks as their JSON.

Pure. `requests` and `writing` are one description of both, `requests_v03` is that of 0.3 over both
bindings; `v1`, `v03` and `v03_rest` have the words of each. What a method does is not here.
"""
