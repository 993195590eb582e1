"""REST of files: contents with ranges, uploads in parts, transcripts and link cards."""
