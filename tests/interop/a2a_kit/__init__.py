"""The agent that A2A's conformance kit asks for, and the runs of the kit against it.

The kit is a2aproject/a2a-tck, which is in no registry: its tests run where a folder has it.
"""
