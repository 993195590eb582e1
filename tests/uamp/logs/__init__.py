"""Tests of the hash chain of logs, its checkpoints and the spool."""
