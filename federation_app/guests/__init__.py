"""Chats with members on several servers (ADR 66): invitations, guests, mirrors, and their delivery.

`names` and `contents` are what servers tell each other; `accounts`, `invitations`, `acts` and
`mirrors` carry it out; `outgoing` finds what a peer does not know yet, and `delivery` posts it.
"""
