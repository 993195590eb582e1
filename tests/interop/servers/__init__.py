"""Agents on official server kits, started as programs; what they run on is not in .venv."""
