import assert from "node:assert/strict";
import { test } from "node:test";
import {
  excerpt,
  queryOf,
  takeFilters,
  withFilters,
  wordsOf,
} from "../../static/chat/search/query.js";

test("a filter becomes a chip when a space ends it", () => {
  assert.deepEqual(takeFilters("plan from:bo"), { filters: [], text: "plan from:bo" });
  assert.deepEqual(takeFilters("plan from:bob now"), {
    filters: [{ name: "from", value: "bob" }],
    text: "plan now",
  });
  assert.deepEqual(takeFilters('in:"My chat" has:file x', true), {
    filters: [
      { name: "in", value: "My chat" },
      { name: "has", value: "file" },
    ],
    text: "x",
  });
  assert.deepEqual(takeFilters("before:2026-01-31", true), {
    filters: [{ name: "before", value: "2026-01-31" }],
    text: "",
  });
  // Words with a colon stay words.
  assert.deepEqual(takeFilters("at 10:30 see https://a.example ", true), {
    filters: [],
    text: "at 10:30 see https://a.example",
  });
});

test("the server is sent each filter once, in quotes where it has a space", () => {
  const filters = withFilters(
    [
      { name: "from", value: "bob" },
      { name: "in", value: "My chat" },
    ],
    [{ name: "from", value: "eve" }],
  );
  assert.equal(queryOf(filters, "  some words "), 'from:eve in:"My chat" some words');
  assert.equal(queryOf([], "  "), "");
  assert.deepEqual(wordsOf('Some "Two words" end'), ["some", "two words", "end"]);
  assert.deepEqual(wordsOf('museum in:"Weekend in Lyon"'), ["museum"]);
});

test("words are marked in any case, width and composition", () => {
  for (const [text, word, found] of [
    ["Die Straße", "STRASSE", "Straße"],
    ["STRASSE", "straße", "STRASSE"],
    ["\u0130stanbul", "istanbul", "\u0130stanbul"],
    ["\u0131sparta", "ISPARTA", "\u0131sparta"],
    ["cafe\u0301 noir", "café", "cafe\u0301"],
    ["café noir", "cafe\u0301", "café"],
    ["Donau\u00addampf", "donaudampf", "Donau\u00addampf"],
    ["\uff26\uff35\uff2c\uff2c", "full", "\uff26\uff35\uff2c\uff2c"],
    ["\uff76\uff9e\uff72\uff84\uff9e", "ガイド", "\uff76\uff9e\uff72\uff84\uff9e"],
    ["\u039f\u03b4\u03cc\u03c2", "\u039f\u0394\u038c\u03a3", "\u039f\u03b4\u03cc\u03c2"],
    ["a of\ufb01ce", "office", "of\ufb01ce"],
    ["\u{1f600} needle", "NEEDLE", "needle"],
    ["会议记录", "记录", "记录"],
    ["\u1f84\u03b4\u03b5", "\u1f04\u03b9", "\u1f84"],
  ])
    assert.deepEqual(
      excerpt(text, wordsOf(word))
        .filter(({ isFound }) => isFound)
        .map((piece) => piece.text),
      [found],
      text,
    );
});

test("an excerpt is around the first word that was found, and marks all of them", () => {
  const text = `${"a ".repeat(100)}Needle and needles ${"b ".repeat(200)}`;
  const pieces = excerpt(text, ["needle"]);
  assert.deepEqual(
    pieces.filter(({ isFound }) => isFound).map((piece) => piece.text),
    ["Needle", "needle"],
  );
  assert.equal(pieces[0].text, "…");
  assert.equal(pieces.at(-1).text, "…");
  assert.equal(
    excerpt("İstanbul needle", ["needle"])
      .map((piece) => piece.text)
      .join(""),
    "İstanbul needle",
  );
  assert.deepEqual(excerpt("no words", []), [{ text: "no words", isFound: false }]);
  assert.deepEqual(excerpt("", ["x"]), []);
  const marked =
    "## Plan\n\n- [x] **Museum**, [map](https://a.example/lyon)\n\n| What | Cost |\n| --- | ---: |\n| Train | 42 |";
  assert.equal(
    excerpt(marked, ["museum"])
      .map((piece) => piece.text)
      .join(""),
    "Plan Museum, map What | Cost Train | 42",
  );
  // A word that only a mark has is shown in it.
  assert.deepEqual(
    excerpt(marked, ["a.example"])
      .filter(({ isFound }) => isFound)
      .map((piece) => piece.text),
    ["a.example"],
  );
});
