/** Texts are compared in one case, width and composition, as chat_app/folding.py does it. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folded, foldedWithPlaces } from "../../static/chat/text/folding.js";
import { fit } from "../../static/chat/keyboard/fuzzy.js";

const TABLE = /** @type {[string, string][]} */ (
  JSON.parse(readFileSync(new URL("../vectors/folding.json", import.meta.url), "utf8"))
);

for (const [text, letters] of TABLE) {
  test(JSON.stringify(text), () => {
    assert.equal(folded(text), letters);
    assert.equal(folded(letters), letters);
    assert.equal(foldedWithPlaces(text).text, letters);
    assert.equal(foldedWithPlaces(text).starts.length, letters.length + 1);
    assert.ok(fit(text, letters) > 0);
  });
}
