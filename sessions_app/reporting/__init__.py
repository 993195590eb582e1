"""Figures of answers, tokens and charges for operators: counted hourly, cached for a minute.

`hours` counts; `figures` returns the figures of the operators' home page. The pages are in `admin`.
"""
