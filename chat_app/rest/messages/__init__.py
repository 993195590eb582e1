"""REST of messages: history, search, threads, what members change, exports, heads of logs."""
