"""How remote agents are asked: a module for each protocol, as a model that answers one request.

A module has what is sent and what the answer's pieces mean. Which agent is called where, and how it
does, is in the folder above.
"""
