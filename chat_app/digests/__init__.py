"""Emails about mentions and direct messages that stay unread.

`unread` finds the people and messages, `tasks` sends the mails from workers, `mails` writes them,
and `unsubscribing` is the link in each that ends them (RFC 8058).
"""
