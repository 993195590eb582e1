"""Marks that say to machines that content was made by AI (docs/article-50.md).

The vocabulary is IPTC's *Digital Source Type*, which schema.org and C2PA use too.
"""

from typing import Final

AI_MADE: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
"""The `digital_source_type` of what an agent says: made by a trained model."""

AI_HEADERS: Final = {"AI-Disclosure": "mode=machine-generated"}
"""The header of HTTP responses whose content an agent made (draft-abaris-aicdh)."""
