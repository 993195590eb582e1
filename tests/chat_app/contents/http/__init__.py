"""Content over HTTP: what may come in, who may read it, and how it is served (UAMP §8.4.1)."""
