"""Tests of webhooks: for chats, over REST."""
