"""Programs measured next to the server, or that it talks to while it is measured.

The bare applications send frames and store nothing. The model answers like a provider.
"""
