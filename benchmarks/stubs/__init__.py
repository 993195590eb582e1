"""Programs that are measured beside the server, or that it talks to while it is measured.

The bare applications send frames and store nothing. The model answers as a provider does.
"""
