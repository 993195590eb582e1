"""The tests of the pure part: vectors, altered envelopes, streams, documents."""
