"""A message with a picture, for agents that edit it."""

import base64
import io
from typing import Any

from PIL import Image


def picture() -> dict[str, Any]:
    """Return a message with a picture and a wish."""
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    source = {"type": "data", "value": data, "mimeType": "image/png"}
    parts = [{"type": "text", "text": "black and white"}, {"type": "image", "source": source}]
    return {"id": "m1", "role": "user", "content": parts}
