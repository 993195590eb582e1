"""Transcripts of sounds."""
