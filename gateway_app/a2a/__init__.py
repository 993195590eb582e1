"""A2A 1.0 and 0.3, and the `tasks` of the transports' specification. Tasks are views of responses.

`tasks`, `dialects` and the card in `cards` are pure. `service` carries out the methods, and
`methods` reads their parameters; `rpc`, `rest` and `spec` are edges.
"""
