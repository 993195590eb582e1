"""Pages for readers, and the scripts that print or draw some of them (`make docs`)."""
