"""Journeys that run on one process, and on two where the people are on different ones.

Both products are started once for the folder, so each journey has a chat of its own. What runs on
one product alone is in the folder above.
"""
