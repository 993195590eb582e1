"""Handlers of client events: `table.HANDLERS` names one function per event.

A handler checks, calls one service or starts a turn, and replies. It knows no transport.
"""
