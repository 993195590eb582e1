"""Forks of chats."""
