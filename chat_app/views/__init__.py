"""Edges of the chat domain over HTTP: the pages and the REST history."""
