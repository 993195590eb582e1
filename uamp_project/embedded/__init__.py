"""The embedded run (DESIGN D9): what replaces Redis and a proxy when there is one machine."""
