"""`/agents/{name}/tasks`: tasks as the transports' specification has them, without JSON-RPC."""
