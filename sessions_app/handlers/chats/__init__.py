"""Handlers of what changes a chat without a turn: members, messages, forks, the queue."""
