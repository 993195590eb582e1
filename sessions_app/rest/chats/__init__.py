"""REST of chats where sessions take part: forks, queues, budgets, receipts, exports, links."""
