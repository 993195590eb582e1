import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { isQuiet, notifies, unreadOf } from "../../static/chat/notifications/rules.js";
import { mentioned } from "../../static/chat/store/mentions.js";
import {
  People,
  contrast,
  initialsOf,
  lookOf,
  profileOfChat,
} from "../../static/chat/person/looks.js";

const SETTINGS = {
  theme: "system",
  density: "comfortable",
  read_receipts: true,
  typing_notices: true,
  notifications: "mentions",
  notification_text: true,
  notification_sound: true,
  quiet_from: "",
  quiet_until: "",
  time_zone: "",
  send_key: "enter",
};
const NOW = new Date("2026-11-23T21:30:00Z");
const news = (text, more = {}) => ({
  isMention: text.includes("@alice"),
  at: NOW.getTime() - 1000,
  isDirect: false,
  ...more,
});

test("initials are of two words, or the first two letters as people see them", () => {
  const found = [
    "alice",
    "paid-echo",
    "Ada Lovelace King",
    "élan",
    "山田 太郎",
    "🚀 Moon base",
    "x",
    "...",
    "ß",
  ].map(initialsOf);
  assert.deepEqual(found, ["AL", "PE", "AL", "ÉL", "山太", "MB", "X", "?", "SS"]);
});

test("names look different, and each name always looks the same", () => {
  const names = Array.from({ length: 72 }, (_, at) => `person${at}`);
  const tones = new Set(names.map((name) => lookOf(name).tone));
  assert.equal(tones.size, 12);
  assert.deepEqual(lookOf("ada"), lookOf("ada"));
  assert.deepEqual(
    names.map((name) => lookOf(name).tone >= 0 && lookOf(name).tone < 12).includes(false),
    false,
  );
});

test("pages without scripts draw the same initials on the same colours", async () => {
  const table = JSON.parse(
    await readFile(new URL("../vectors/faces.json", import.meta.url), "utf8"),
  );
  for (const { name, initials, tone } of table) {
    const look = lookOf(name);
    assert.deepEqual([look.text, look.tone], [initials, tone], name);
  }
});

test("letters are read on every colour of an avatar, in light and dark", async () => {
  const css = await readFile(
    new URL("../../static/chat/styles/tokens.css", import.meta.url),
    "utf8",
  );
  const tones = Array.from(css.matchAll(/--tone-\d+: (#[0-9a-f]{6})/g), ([, colour]) => colour);
  const [light, dark] = /--bg: light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/.exec(css).slice(1);
  assert.equal(tones.length, 12);
  for (const tone of tones) {
    assert.ok(contrast(tone, "#ffffff") >= 4.5, `${tone} behind white`);
    for (const page of [light, dark]) assert.ok(contrast(tone, page) >= 3, `${tone} on ${page}`);
  }
  for (const colour of ["#ffffff", "#ffff00", "#808080", "#777777", "#000000", "#12ab34"]) {
    const { isInkDark } = lookOf("x", { avatar_colour: colour });
    assert.ok(contrast(colour, isInkDark ? "#111111" : "#ffffff") >= 4.4, colour);
  }
});

test("a profile decides how a person looks, and a chat has an emoji, a colour or a picture", () => {
  const people = new People();
  let changes = 0;
  people.addEventListener("change", () => {
    changes += 1;
  });
  people.learn([
    { kind: "user", name: "ada", display_name: "Ada L.", avatar_emoji: "🚀" },
    { kind: "agent", name: "echo" },
  ]);
  people.learn([{ kind: "user", name: "ada", display_name: "Ada L.", avatar_emoji: "🚀" }]);
  assert.equal(changes, 1);
  assert.deepEqual(
    [people.nameOf("ada"), people.nameOf("bea"), lookOf("ada", people.profile("ada")).text],
    ["Ada L.", "bea", "🚀"],
  );
  assert.equal(lookOf("ada", { avatar_colour: "red; background: url(x)" }).colour, "");
  assert.deepEqual(
    [
      profileOfChat({ avatar: "🚀" }),
      profileOfChat({ avatar: "#123456" }),
      profileOfChat({ avatar: "content:1", avatar_url: "/x" }),
    ],
    [{ avatar_emoji: "🚀" }, { avatar_colour: "#123456" }, { avatar_url: "/x" }],
  );
});

test("it is quiet by the clock of the person, also over midnight", () => {
  const hours = (from, until, zone = "Europe/Berlin") => ({
    ...SETTINGS,
    quiet_from: from,
    quiet_until: until,
    time_zone: zone,
  });
  // 21:30 UTC is 22:30 in Berlin.
  assert.equal(isQuiet(hours("22:00", "07:00"), NOW), true);
  assert.equal(isQuiet(hours("22:00", "07:00", "UTC"), NOW), false);
  assert.equal(isQuiet(hours("22:30", "23:00"), NOW), true);
  assert.equal(isQuiet(hours("21:00", "22:30"), NOW), false);
  assert.equal(isQuiet(hours("23:00", "07:00"), NOW), false);
  assert.equal(isQuiet(hours("00:00", "23:00", "No/Where"), NOW), false);
  assert.equal(isQuiet(SETTINGS, NOW), false);
});

test("a message notifies as the chat says, else as the person does", () => {
  const cases = [
    [{}, "mentions", news("hello"), false],
    [{}, "mentions", news("hello @alice!"), true],
    [{}, "mentions", news("hello", { isDirect: true }), true],
    [{}, "all", news("hello"), true],
    [{}, "none", news("@alice", { isDirect: true }), false],
    [{ notifications: "all" }, "none", news("hello"), true],
    [{ notifications: "none" }, "all", news("@alice"), false],
    [{ notifications: "mentions" }, "all", news("hello"), false],
    [{ muted: true }, "all", news("@alice"), false],
    [{}, "mentions", news("a reply", { isFollowed: true }), true],
    [{ notifications: "none" }, "all", news("a reply", { isFollowed: true }), false],
    [{ muted: true }, "all", news("a reply", { isFollowed: true }), false],
    [{}, "all", news("hello", { at: NOW.getTime() - 3_600_000 }), false],
  ];
  for (const [chat, notifications, message, expected] of cases) {
    assert.equal(
      notifies(chat, { ...SETTINGS, notifications }, message, NOW),
      expected,
      JSON.stringify([chat, notifications, message]),
    );
  }
  const quiet = {
    ...SETTINGS,
    notifications: "all",
    quiet_from: "22:00",
    quiet_until: "07:00",
    time_zone: "Europe/Berlin",
  };
  assert.equal(notifies({}, quiet, news("@alice"), NOW), false);
});

test("a text mentions names outside of code, as the server reads it", () => {
  const names = [
    "Alice-B",
    "alice",
    "Bob",
    "carol",
    "Zoë",
    "x",
    "y",
    "小明",
    "小明华",
    "지민",
    "Straße",
    "Ida",
  ];
  for (const [text, found] of /** @type {[string, string[]][]} */ ([
    ["ask @alice-b, `@bob` and (@Carol.)", ["alice-b", "carol"]],
    ["```\n@bob\n``` mail@alice.example /@x @@y *@zoë*", ["zoë"]],
    ["请@bob看一下", ["bob"]],
    ["오늘@bob", ["bob"]],
    ["\uff20bob", ["bob"]],
    ["この@ｂｏｂを", ["bob"]],
    ["@BOB\u00ad", ["bob"]],
    ["@zoe\u0308", ["zoë"]],
    ["@小明你好", ["小明"]],
    ["请@小明华看一下", ["小明华"]],
    ["@小李你好", []],
    ["@지민에게", ["지민"]],
    ["@STRASSE @\u0130da", ["strasse", "ida"]],
    ["@bobby", []],
    ["bob", []],
  ]))
    assert.deepEqual([...mentioned(text, names)], found, text);
});

test("a muted chat counts only its mentions, and none where nothing notifies", () => {
  assert.deepEqual(unreadOf({ unread: 5 }), { shown: 5, counts: true, mentions: 0 });
  assert.deepEqual(unreadOf({ unread: 5, unread_mentions: 2 }), {
    shown: 5,
    counts: true,
    mentions: 2,
  });
  assert.deepEqual(unreadOf({ unread: 0 }), { shown: 0, counts: false, mentions: 0 });
  assert.deepEqual(unreadOf({ muted: true, unread: 5 }), { shown: 5, counts: false, mentions: 0 });
  assert.deepEqual(unreadOf({ muted: true, unread: 5, unread_mentions: 2 }), {
    shown: 2,
    counts: true,
    mentions: 2,
  });
  assert.deepEqual(
    unreadOf({ muted: true, unread: 5, unread_mentions: 2, notifications: "none" }),
    { shown: 5, counts: false, mentions: 0 },
  );
});
