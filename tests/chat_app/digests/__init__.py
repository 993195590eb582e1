"""Emails about what stays unread."""
