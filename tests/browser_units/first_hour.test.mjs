import assert from "node:assert/strict";
import { test } from "node:test";
import { spokenText } from "../../static/chat/parts/spoken-text.js";
import { filterExamples } from "../../static/chat/search/query.js";
import { factText } from "../../static/chat/store/facts.js";
import { previewOf } from "../../static/chat/store/removal.js";
import { agoText } from "../../static/chat/text/time.js";

const ALICE = { id: "1", name: "alice" };
const BOB = { id: "2", name: "bob" };
const person = ({ id, name }, role = "member") => ({ kind: "user", id, name, role });
const caller = ({ id, name }) => ({ user_id: id, username: name });

const joined = (participant, by) => ({ type: "participant.joined", participant, by });
const left = (participant, by) => ({ type: "participant.left", participant, by });
const updated = (participant, by) => ({ type: "participant.updated", participant, by });
const link = (type, kind, by) => ({ type, link: { kind, grows: false }, by });
const called = (more) => ({ type: "call.ended", started_by: caller(ALICE), ...more });

const LINES = [
  [joined(person(BOB), ALICE), "You added bob", "alice added you", "alice added bob"],
  [joined(person(BOB), BOB), "bob joined", "You joined", "bob joined"],
  [joined({ ...person(BOB), kind: "agent" }, ALICE), "You added bob", "alice added bob"],
  [left(person(BOB), ALICE), "You removed bob", "alice removed you", "alice removed bob"],
  [left(person(ALICE), ALICE), "You left", "alice left"],
  [
    updated(person(BOB, "admin"), ALICE),
    "You made bob an admin",
    "alice made you an admin",
    "alice made bob an admin",
  ],
  [
    updated(person(BOB, "owner")),
    "bob is now an owner",
    "You're now an owner",
    "bob is now an owner",
  ],
  [
    link("link.created", "invite", ALICE),
    "You created an invite link",
    "alice created an invite link",
  ],
  [
    link("link.revoked", "share", ALICE),
    "You revoked a public link",
    "alice revoked a public link",
  ],
  [
    called({ reason: "unanswered" }),
    "You called, and no one answered",
    "alice called, and no one answered",
  ],
  [
    called({ reason: "ended", duration_ms: 180_000, participants: [caller(BOB)] }),
    "Your call, 3 min, with bob",
    "alice's call, 3 min, with you",
    "alice's call, 3 min, with bob",
  ],
];

for (const [event, forAlice, forBob, forCarol = forBob] of LINES)
  test(`each member reads "${forCarol}" from where they stand`, () => {
    assert.deepEqual(
      ["1", "2", "3"].map((me) => factText(event, me)),
      [forAlice, forBob, forCarol],
    );
  });

test("a moment ago is a word, and the example dates of the search are about now", () => {
  const now = new Date(2026, 10, 29, 12).getTime();
  assert.equal(agoText(now - 5_000, now), "just now");
  const { before, after } = filterExamples(now);
  assert.deepEqual([before, after], ["before:2026-11-29", "after:2026-10-30"]);
});

test("the name of a message has its pictures and files", () => {
  const items = [
    { type: "image", filename: "boat.png" },
    { type: "image" },
    { type: "file", filename: "plan.pdf" },
  ];
  const message = { content: "Look", content_items: items, deletedAt: null };
  assert.equal(spokenText(message), "Look, picture: boat.png, picture, plan.pdf");
  assert.equal(spokenText({ ...message, content: "", content_items: [{ type: "file" }] }), "Files");
  assert.equal(spokenText({ ...message, deletedAt: 1 }), "This message was deleted.");
});

test("a message that is about to be deleted is not the preview of its chat", () => {
  const said = (id, content, deletedAt = null) => ({ id, name: "alice", content, deletedAt });
  const chat = { id: "c", preview: { name: "alice", content: "two" } };
  const open = { chatId: "c", entries: [said("m1", "one"), said("m2", "two")], removing: "" };
  const shown = (more) => previewOf(chat, { ...open, ...more })?.content;
  assert.equal(shown({}), "two");
  assert.equal(shown({ removing: "m2" }), "one");
  assert.equal(shown({ removing: "m1" }), "two");
  assert.equal(shown({ removing: "m2", chatId: "other" }), "two");
  // The list is read again a moment after the message is gone.
  assert.equal(shown({ removing: "m2", entries: [said("m1", "one"), said("m2", "", 1)] }), "one");
  assert.equal(shown({ removing: "m2", entries: [said("m2", "two")] }), undefined);
});
