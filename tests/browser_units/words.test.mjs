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
  assert.equal(
    interpolate("%(a)s left %(b)s at 100 %%", { a: "%(b)s", b: 2 }),
    "%(b)s left 2 at 100 %",
  );
  assert.equal(interpolate("%(a)s", {}), "%(a)s");
});

test("a value that is written from right to left, or turns what follows, stands by itself", () => {
  assert.equal(
    interpolate("%(a)s and %(b)s", { a: "\u05d0\u05d1", b: "bob" }),
    "\u2068\u05d0\u05d1\u2069 and bob",
  );
  assert.equal(interpolate("%(a)s left", { a: "ali\u202eec" }), "\u2068ali\u202eec\u2069 left");
  // It cannot end its isolation itself.
  assert.equal(interpolate("%(a)s left", { a: "a\u2069\u202eb" }), "\u2068a\u202eb\u2069 left");
});
