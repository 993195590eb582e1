"""REST of messages: history, search, threads, changes by members, exports, signed log heads."""
