"""Members of chats: rights, agents, budgets, links."""
