"""Pages for readers, and the script that draws their picture (`python -m docs.picture`)."""
