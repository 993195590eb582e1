"""Figures of answers, tokens and charges for operators: counted by the hour, kept for a minute.

`hours` counts, `figures` returns what the operators' home shows. The pages are in `admin`.
"""
