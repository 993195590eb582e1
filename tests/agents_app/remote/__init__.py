"""Remote agents: against servers that answer well or badly, and against this server itself."""
