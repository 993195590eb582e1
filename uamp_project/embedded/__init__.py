"""The embedded run: what replaces Redis and a proxy when there is one machine."""
