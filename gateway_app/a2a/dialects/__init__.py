"""The formats of A2A 1.0 and 0.3: reading requests and writing tasks as JSON. Pure.

`requests` and `writing` hold the parts that all versions share, and `requests_v03` those that both
bindings of 0.3 share; `v1`, `v03` and `v03_rest` define each dialect. The methods themselves live
elsewhere.
"""
