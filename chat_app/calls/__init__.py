"""Calls between the people of a chat: who is called, who takes part, and how a call ends.

`states` holds the transition tables, `operations` what changes a call, `call_change` one change
under the lock of its chat, `reading` the queries of sessions and REST, `events` the events of both.
The sound flows between the clients and does not pass through here.
"""
