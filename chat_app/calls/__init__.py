"""Calls between the people of a chat: who is called, who takes part, and how a call ends.

`states` has the tables of transitions, `changes` all that changes a call, `reading` what sessions
and REST read, `events` the events of both. Sound goes between the clients and is not here.
"""
