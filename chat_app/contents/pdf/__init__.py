"""PDF files, read just far enough to bound how many pages and how much text a reader finds.

Readers differ in what they repair. Every definition of an object counts, wherever it stands, and
a file that is ambiguous or cannot be read counts as the most pages that any vendor takes.
"""
