"""The tool loop, with the scripted provider."""
