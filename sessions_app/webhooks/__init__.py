"""Webhooks: the states of a response, sent to an address that its client names.

`receivers` keeps the addresses, `changes` finds new states and queues them, `deliveries` and
`tasks` send them. What is sent is a `formats` entry of the edge that offers webhooks.
"""
