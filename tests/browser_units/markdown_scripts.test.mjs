/**
 * Markdown in scripts without spaces, tags and addresses of models:
 * `tests/chat_app/test_markdown_scripts.py` has the same table.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { blocksOf } from "../../static/chat/markdown/parser.js";

const TABLE = JSON.parse(
  readFileSync(new URL("../vectors/markdown/scripts.json", import.meta.url), "utf8"),
);

for (const [kind, rows] of Object.entries(TABLE)) {
  for (const [text, html] of rows)
    test(`${kind}: ${text}`, () =>
      assert.equal(
        blocksOf(text)
          .map((block) => block.html)
          .join("")
          .trim(),
        html,
      ));
}
