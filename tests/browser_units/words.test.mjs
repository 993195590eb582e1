import assert from "node:assert/strict";
import { test } from "node:test";
import { gettext, interpolate, ngettext, pgettext } from "../../static/chat/words.js";

test("texts are shown as they are written without a catalogue", () => {
  assert.equal(gettext("Send"), "Send");
  assert.equal(pgettext("verb", "Pin"), "Pin");
  assert.equal(ngettext("%(n)s file", "%(n)s files", 1), "%(n)s file");
  assert.equal(ngettext("%(n)s file", "%(n)s files", 0), "%(n)s files");
});

test("values are put in by name, and never looked at again", () => {
  assert.equal(interpolate("%(a)s left %(b)s at 100 %%", { a: "%(b)s", b: 2 }), "%(b)s left 2 at 100 %");
  assert.equal(interpolate("%(a)s", {}), "%(a)s");
});
