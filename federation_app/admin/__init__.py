"""Peers and the chats shared with them, in the admin.

`peers` has the pages of peers, keys and envelopes; `guests` those of shared chats.
"""

from federation_app.admin import guests, peers

__all__ = ["guests", "peers"]
