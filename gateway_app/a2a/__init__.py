"""A2A 1.0 and 0.3, and the `tasks` of the transports' specification: tasks are views of responses.

`tasks` and `dialects` are pure, and so is the card of `cards`. `service` does what a method asks
for, `methods` reads its parameters; `rpc`, `rest` and `spec` are edges.
"""
