"""Messages that are queued while agents answer: sent in order, once, seen by all, and refused."""
