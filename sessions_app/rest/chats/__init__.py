"""REST of chats that involves sessions: forks, queues, budgets, receipts, exports, links."""
