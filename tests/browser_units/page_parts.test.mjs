import assert from "node:assert/strict";
import { test } from "node:test";
import { Drafts } from "../../static/chat/store/drafts.js";
import { History } from "../../static/chat/store/history.js";
import { UNFINISHED, unknownMentions } from "../../static/chat/store/mentions.js";
import { REDUCERS, emptyChat } from "../../static/chat/store/open-chat.js";
import { rowsOf } from "../../static/chat/store/rows.js";
import { Store } from "../../static/chat/store/store.js";

class Memory {
  kept = new Map();
  getItem = (key) => this.kept.get(key) ?? null;
  setItem = (key, value) => this.kept.set(key, value);
  removeItem = (key) => this.kept.delete(key);
}

const joined = (seq, name, by) => ({
  seq,
  type: "participant.joined",
  payload: { participant: { kind: "user", id: name, name }, by },
});

test("a mention of one who is not there is found when its name is written", () => {
  const members = [{ name: "Bob" }, { name: "echo" }];
  assert.deepEqual(unknownMentions("@bob and @critic, or (@critic)", members), ["critic"]);
  assert.deepEqual(unknownMentions("@echo. and @cri", members), []);
  assert.deepEqual(unknownMentions("mail me@example.org `@code ` @all ", members), []);
  const chinese = [{ name: "小明" }, { name: "Zoë" }];
  assert.deepEqual(unknownMentions("@小明你好，请@李雷 看", chinese), ["李雷"]);
  assert.deepEqual(
    unknownMentions("@zoe\u0308 \uff20\uff3a\uff2f\u00cb 오늘@critic에게 ", chinese),
    ["critic"],
  );
  assert.deepEqual(unknownMentions("오늘@cri", chinese), []);
});

test("names are offered behind an @ beside letters without spaces, and of full width", () => {
  for (const [text, typed] of [
    ["@", ""],
    ["hi @bo", "bo"],
    ["(@bo", "bo"],
    ["请@", ""],
    ["请@bo", "bo"],
    ["오늘@bo", "bo"],
    ["\uff20bo", "bo"],
    ["你好，@小", "小"],
    ["ขอ@bo", "bo"],
    ["「@bo", "bo"],
    ["“@bo", "bo"],
    ["—@bo", "bo"],
    ["@jos\u00e9-m.", "jos\u00e9-m."],
    ["@zoe\u0308", "zoe\u0308"],
    ["\u{20000}@bo", "bo"],
  ])
    assert.equal(UNFINISHED.exec(text)?.[1], typed, text);
  for (const text of ["me@bo", "a.@bo", "x/@bo", "@@bo", "@bo ", "é@bo", "1@bo"])
    assert.equal(UNFINISHED.exec(text), null, text);
});

test("drafts survive a reload, and go when the person signs out", () => {
  const storage = new Memory();
  const drafts = new Drafts(storage, "1");
  drafts.set("a", "hello");
  drafts.set("b", "");
  drafts.set("long", "x".repeat(20_001));
  drafts.save();
  const again = new Drafts(storage, "1");
  assert.deepEqual([again.get("a"), again.get("b"), again.get("long")], ["hello", "", ""]);
  assert.equal(new Drafts(storage, "2").get("a"), "");
  again.forget();
  assert.equal(new Drafts(storage, "1").get("a"), "");
});

test("the history brings who was added by whom, and why answers failed", async () => {
  const store = new Store(emptyChat("1"), REDUCERS);
  const asked = [];
  const message = {
    id: "m",
    seq: 7,
    role: "assistant",
    content: "",
    sender_id: "9",
    name: "echo",
    created_at: 0,
    response_id: "r",
    status: "failed",
  };
  const answers = {
    messages: { data: [message], has_more: true },
    events: {
      data: [
        {
          seq: 9,
          type: "response.error",
          payload: { response_id: "r", error: { message: "No money." } },
        },
        joined(8, "carol", { id: "2", name: "bob" }),
        joined(3, "dave"),
      ],
    },
  };
  const api = {
    get: async (path) =>
      asked.push(path) && answers[path.includes("/events?") ? "events" : "messages"],
  };
  store.dispatch({ type: "opened", chatId: "c" });
  await new History(store, api).load(new Map());
  const rows = rowsOf(store.state);
  assert.deepEqual(
    rows.map((row) => row.text || row.error || row.kind),
    ["day", "No money.", "bob added carol"],
  );
  assert.match(asked[1], /after=6&before=57/);
  store.dispatch({
    type: "facts",
    events: [
      {
        seq: 10,
        type: "participant.left",
        participant: { kind: "user", id: "2", name: "bob" },
        by: { id: "2", name: "bob" },
      },
    ],
  });
  assert.equal(rowsOf(store.state).at(-1).text, "bob left");
});

test("where a fork comes from stands behind the copied messages, with the agents that did not come along", () => {
  const store = new Store(emptyChat("1", "c"), REDUCERS);
  const source = { chat_id: "s", message_id: "m", title: "Plans" };
  const forked = {
    seq: 3,
    type: "chat.forked",
    chat_id: "c",
    source,
    messages: 2,
    agents_left_out: ["critic"],
    by: { id: "2", name: "bob" },
    forked_at: 0,
  };
  store.dispatch({ type: "facts", events: [forked] });
  const [row] = rowsOf(store.state);
  assert.match(row.text, /^Forked from Plans by bob, /);
  assert.match(row.more, /critic$/);
  assert.deepEqual(row.source, { chatId: "s", messageId: "m" });
  store.dispatch({
    type: "facts",
    events: [{ ...forked, agents_left_out: undefined, source: { ...source, title: "" } }],
  });
  const [again] = rowsOf(store.state);
  assert.match(again.text, /^Forked from a chat without a name by bob, /);
  assert.equal(again.more, "");
});

test("the beginning of a message is one line without marks", async () => {
  const { beginningOf } = await import("../../static/chat/markdown/plain.js");
  assert.equal(
    beginningOf(
      "# Plan\n\n- [x] **bold** `code`\n2. [name](https://a.example/b) ~~no~~\n> said",
      99,
    ),
    "Plan bold code name no said",
  );
  assert.equal(beginningOf("👋👋👋", 2), "👋👋…");
  assert.equal(beginningOf("a_b * c", 99), "a_b * c");
  assert.equal(
    beginningOf("<details>\n<summary>More</summary>\nH<sub>2</sub>O<br>x\n</details>", 99),
    "More H2O x",
  );
  assert.equal(
    beginningOf("Some *italic* and _more of it_, 2 * 3 * 4, snake_case_name, **bold *both***", 99),
    "Some italic and more of it, 2 * 3 * 4, snake_case_name, bold both",
  );
  const started = performance.now();
  for (const piece of ["*a", "_a", "[", "![", "](", "`", "# ", "1. ", "|", "| ", "|-", " |"])
    beginningOf(piece.repeat(100_000), 100);
  assert.ok(performance.now() - started < 2_000);
});

test("amounts are shown as people pay them, and prices to their last digit", async () => {
  const { atMost, formatAmount, formatDue, formatExact } = await import(
    "../../static/chat/money/amounts.js"
  );
  const rows = [
    // amount, as it is paid, as it is asked for, exactly
    ["0.02512", "$0.03", "$0.03", "$0.02512"],
    ["0.02001", "$0.02", "$0.03", "$0.02001"],
    ["4.97999", "$4.98", "$4.98", "$4.97999"],
    ["5", "$5.00", "$5.00", "$5.00"],
    ["0", "$0.00", "$0.00", "$0.00"],
    ["0.00042", "$0.00042", "$0.00042", "$0.00042"],
    ["0.0012345", "$0.0012", "$0.0013", "$0.0012345"],
    ["-0.00998", "−$0.01", "−$0.01", "−$0.00998"],
    ["1234567.891", "$1,234,567.89", "$1,234,567.90", "$1,234,567.891"],
  ];
  for (const [amount, paid, due, whole] of rows)
    assert.deepEqual(
      [formatAmount(amount), formatDue(amount), formatExact(amount)],
      [paid, due, whole],
    );
  assert.equal(formatAmount("3", "CREDITS"), "3.00 CREDITS");
  assert.equal(atMost("0.02512"), "0.03");
});

test("an amount may be typed with a comma, and one that may be a thousand stays", async () => {
  const { amountFromInput, padded } = await import("../../static/chat/money/amounts.js");
  const rows = [
    ["1.5", "1.5"],
    [" 1,50 ", "1.50"],
    ["0,03", "0.03"],
    ["12,5", "12.5"],
    ["0,0005", "0.0005"],
    ["1,000", "1,000"],
    ["1.000,50", "1.000,50"],
    ["1,2,3", "1,2,3"],
    ["", ""],
  ];
  for (const [text, amount] of rows) assert.equal(amountFromInput(text), amount);
  assert.equal(padded("1.5"), "1.50");
  assert.equal(amountFromInput(padded("0.03")), "0.03");
});
