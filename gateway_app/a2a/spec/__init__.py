"""`/agents/{name}/tasks`: tasks in the format of the transports' specification."""
