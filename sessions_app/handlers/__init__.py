"""Handlers of client events; `table.HANDLERS` maps each event to its function.

A handler validates, calls one service or starts a turn, and replies. Handlers know no transport.
"""
