"""Remote agents: rows with an address, called over their own protocols in place of a model.

`models` calls an agent, `health` tracks its failures. `agents_app.outbound.rules` decides where
requests may go.
"""
