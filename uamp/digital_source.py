"""Machine-readable marks for content made by AI (docs/article-50.md).

The vocabulary is IPTC's *Digital Source Type*, which schema.org and C2PA use too.
"""

from typing import Final

AI_MADE: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
"""The `digital_source_type` of an agent's content: made by a trained model."""

AI_HEADERS: Final = {"AI-Disclosure": "mode=machine-generated"}
"""The header of HTTP responses with content made by an agent (draft-abaris-aicdh)."""
