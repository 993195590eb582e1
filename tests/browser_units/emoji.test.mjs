/** Emoji by their names. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { EMOJI, emojiFor, withEmoji } from "../../static/chat/text/emoji.js";

test("each emoji and each name is there once", () => {
  assert.equal(new Set(EMOJI.map(({ emoji }) => emoji)).size, EMOJI.length);
  assert.equal(new Set(EMOJI.map(({ name }) => name)).size, EMOJI.length);
  for (const { name } of EMOJI) assert.match(name, /^[a-z0-9_+-]+$/);
});

test("emoji are found by any of their words, and by themselves", () => {
  assert.equal(emojiFor("").length, EMOJI.length);
  assert.deepEqual(
    emojiFor("Rocket").map(({ emoji }) => emoji),
    ["🚀"],
  );
  assert.ok(emojiFor("happy").length > 2);
  assert.deepEqual(
    emojiFor(":tada:").map(({ emoji }) => emoji),
    ["🎉"],
  );
  assert.deepEqual(
    emojiFor("🎂").map(({ emoji }) => emoji),
    ["🎂"],
  );
  assert.deepEqual(emojiFor("nothing has this name"), []);
});

for (const [text, expected] of [
  [":smile:", "😄"],
  ["Hi :tada:", "Hi 🎉"],
  ["(:heart:", "(❤️"],
  [":+1:", "👍"],
  [":100:", "💯"],
  [":smile", null],
  [":unknown:", null],
  ["10:30:", null],
  ["a:smile:", null],
  ["http://a.b:80:", null],
  ["::", null],
]) {
  test(`what is before the caret: ${text}`, () => {
    assert.equal(withEmoji(text, text.length)?.text ?? null, expected);
  });
}

test("the caret stays behind the emoji", () => {
  assert.deepEqual(withEmoji("a :fire: b", 8), { text: "a 🔥 b", caret: 4 });
});
