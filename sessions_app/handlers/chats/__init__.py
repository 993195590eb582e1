"""Handlers of changes to a chat other than turns: members, messages, forks, the queue."""
