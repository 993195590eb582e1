"""REST of people and agents: who is in a chat, its links, and profiles."""
