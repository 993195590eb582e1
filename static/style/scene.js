/**
 * The chat's states that arrive over the socket: growing answers, requests to the user, payments,
 * turns, a call.
 */

import { LiveResponse, newToolPart } from "../uamp/live-response.js";
import { calls, client, me, page, threadPage } from "../chat/context.js";
import { CHAT } from "./sample-people.js";

/** @typedef {import("../uamp/live-response.js").Part} Part */
/** @typedef {import("../uamp/approvals.js").Approval & {thread?: string}} Approval */

const HOUR = 3_600_000;
/** A typing client repeats its signal this often. */
const TYPING_MS = 4_000;
const later = () => Math.floor(Date.now() / 1000) + 3600;

/**
 * @param {string} name
 * @param {Partial<import("../uamp/live-response.js").ToolPart>} more
 * @returns {Part}
 */
const tool = (name, more) => ({
  ...newToolPart(`call-${name}`, name),
  arguments: '{"file": "costs.csv"}',
  ...more,
});

/**
 * @param {string} id
 * @param {Part[]} parts
 * @param {Partial<LiveResponse>} [more]
 * @param {string} [thread]
 */
function answer(id, parts, more = {}, thread = "") {
  const response = Object.assign(
    new LiveResponse(id, { agent: "report", message_id: "question", thread }),
    { parts },
    more,
  );
  const ends = response.status !== "running";
  (thread ? threadPage : page).dispatch({ type: ends ? "response-end" : "response", response });
  return response;
}

function answers() {
  answer("begins", []);
  answer("pays", [], { messageId: "mine", waitsFor: "Waiting for bob's payment" });
  answer("thinks", [{ kind: "thinking", text: "The totals come first." }]);
  answer("works", [
    tool("csv_report", {
      progress: { percent: 40, step: 2, total_steps: 5, message: "Counting rows" },
    }),
    tool("search", { progress: { stage: "Searching" } }),
    tool("edit_picture", { asking: true }),
    tool("delegate", {
      arguments: '{"agent": "darkroom", "task": "Turn it."}',
      said: "I turn the picture to the left.",
    }),
    tool("count", { done: true, stopped: true, tookMs: 300 }),
  ]);
  const own = answer("grows", [
    { kind: "text", text: "## Rain\n\nIt is going to rain on **Saturday" },
  ]);
  answer("stopped-early", [{ kind: "text", text: "One" }], { status: "cancelled", reason: "bob" });
  answer("failed-early", [], { status: "failed", reason: "The model was not reached." });
  answer("grows-in-thread", [{ kind: "text", text: "In a thread" }], {}, "root");
  return [own];
}

/** @param {string} callId @param {Partial<Approval>} more @returns {Approval} */
const approval = (callId, more) => ({
  key: callId,
  callId,
  responseId: "works",
  agent: "careful",
  name: "edit_picture",
  arguments: JSON.stringify({ turn: "left", by: 90 }),
  userId: "900001",
  expiresAt: later(),
  state: "asking",
  outcome: null,
  ...more,
});

/** Another member decides this one. */
export const OTHERS = "others";

const APPROVALS = [
  approval("mine", {}),
  approval(OTHERS, {}),
  approval("sent", { state: "sent" }),
  approval("allowed", {
    state: "closed",
    outcome: { approved: true, userId: me.id, username: me.username },
  }),
  approval("refused", {
    state: "closed",
    outcome: { approved: false, userId: "900001", username: "bob" },
  }),
  approval("over", { state: "closed" }),
];

/**
 * @param {string} key
 * @param {Partial<import("../uamp/payments.js").Payment>} more
 * @returns {import("../uamp/payments.js").Payment}
 */
const payment = (key, more) => ({
  key,
  responseId: key,
  agent: "paid-echo",
  amount: "0.02",
  currency: "USD",
  reason: "llm_usage",
  isTopUp: false,
  byBalance: true,
  expiresAt: later(),
  state: "asked",
  eventId: "",
  error: null,
  ...more,
});
const PAYMENTS = [
  payment("asked", { responseId: "pays" }),
  payment("topup", { isTopUp: true }),
  payment("tool", { reason: "tool_usage" }),
  payment("paying", { state: "sent" }),
  payment("too-much", { amount: "9.00" }),
  payment("refused", {
    amount: "9.00",
    state: "refused",
    error: {
      code: "insufficient_balance",
      message: "",
      required: "9.00",
      current: "0.41",
      canRetry: true,
    },
  }),
  payment("limit", {
    state: "refused",
    error: {
      code: "rate_limited",
      message: "Your limit of a day is used up.",
      required: "",
      current: "",
      canRetry: true,
    },
  }),
  payment("no-balance", { byBalance: false }),
];

const QUEUE = [
  {
    type: "queue",
    id: "1",
    user_id: "900001",
    username: "bob",
    text: "@report and the museum?",
    status: "queued",
    client_event_id: "a",
    queued_at: Date.now(),
  },
  {
    type: "queue",
    id: "2",
    user_id: me.id,
    username: me.username,
    text: "@report which platform?",
    files: 1,
    status: "starting",
    client_event_id: "b",
    queued_at: Date.now(),
  },
  {
    type: "queue",
    id: "3",
    user_id: me.id,
    username: me.username,
    text: "About that message",
    status: "failed",
    code: "message_not_found",
    reason: "There is no such message in this chat.",
    client_event_id: "c",
    queued_at: Date.now(),
  },
];

/**
 * @param {import("../uamp/outbox.js").Turn["state"]} state
 * @param {Partial<import("../uamp/outbox.js").Turn>} [more]
 * @returns {import("../uamp/outbox.js").Turn}
 */
const turn = (state, more = {}) => ({
  id: `turn-${state}`,
  chatId: CHAT.id,
  sessionId: null,
  frames: [],
  text: `A message: ${state}`,
  attachments: [],
  createdAt: Date.now(),
  state,
  ...more,
});
const FILE = {
  content_id: "1",
  url: "/api/content/1",
  filename: "costs.csv",
  mime_type: "text/csv",
};
const TURNS = [
  turn("waiting"),
  turn("sent", { attachments: [FILE] }),
  turn("held"),
  turn("failed", { error: "The message is too long." }),
  turn("unknown"),
];

/** The agents of a call: one hosted by this page and one by bob; a third could be added. */
const AGENTS = {
  joined: [
    { agent: "report", host: me.id },
    { agent: "darkroom", host: "900001" },
  ],
  host: { agents: new Map([["report", { isHandsFree: true, detector: { isHeld: true } }]]) },
  stateOf: (/** @type {string} */ name) => (name === "report" ? "speaks" : "listens"),
  isAnswer: () => false,
  follow() {},
  remix() {},
  close() {},
};

/** A call that this page is in, without a microphone, and one that rings. */
function call() {
  const started = Date.now() - 4 * 60_000;
  const bob = { user_id: "900001", username: "bob", state: "joined" };
  const caro = { user_id: "900002", username: "caro", state: "ringing" };
  const own = { user_id: me.id, username: me.username };
  calls.active = /** @type {import("../chat/calls/types.js").Active} */ (
    /** @type {unknown} */ ({
      chatId: CHAT.id,
      callId: "call-1",
      joined: true,
      muted: true,
      deviceId: "",
      stream: new MediaStream(),
      mesh: { peers: new Map([[bob.user_id, { state: "connected" }]]), update() {}, close() {} },
      levels: { speaking: new Set([bob.user_id]), close() {} },
      sounds: new Map(),
      timer: 0,
      gone: new AbortController(),
      agents: AGENTS,
    })
  );
  const rings = { ...own, state: "ringing", rings_until: Date.now() + HOUR };
  for (const [id, chatId, state, members] of /** @type {const} */ ([
    ["call-1", CHAT.id, "running", [bob, caro, { ...own, state: "joined" }]],
    ["call-2", "chat_2", "ringing", [{ ...bob }, rings]],
  ])) {
    client.dispatchEvent(
      new CustomEvent("call", {
        detail: {
          type: "call.updated",
          call_id: id,
          chat_id: chatId,
          state,
          revision: 1,
          started_by: bob.user_id,
          started_at: started,
          answered_at: started,
          members,
        },
      }),
    );
  }
}

/** @param {ParentNode} root with the open chat */
export async function play(root) {
  const own = answers();
  page.dispatch({ type: "approvals", list: APPROVALS });
  page.dispatch({ type: "payments", list: PAYMENTS });
  page.dispatch({ type: "turns", list: TURNS });
  page.dispatch({ type: "queue", list: QUEUE });
  page.dispatch({
    type: "works",
    list: [
      {
        agent: "report",
        kind: "tool",
        tool: "csv_report",
        percent: 40,
        step: "2/5",
        userId: "",
        waitsFor: "",
      },
    ],
  });
  page.dispatch({
    type: "shared",
    shared: {
      by: "checklist",
      value: {
        packing: [
          { text: "Sun cream", done: true },
          { text: "Map", done: false },
        ],
        budget: 120,
        route: { from: "Paris" },
        guests: [],
      },
    },
  });
  page.dispatch({ type: "reply-to", entry: page.state.entries[0] });
  page.dispatch({ type: "editing", id: "editing" });
  call();
  /** @type {any} */
  const composer = root.querySelector("chat-view chat-composer");
  composer.showRunning(own);
  composer.write("@paid-echo and @dana, will you come?");
  /** @type {any} */
  const typing = root.querySelector("typing-line");
  const type = () => typing.typed({ user_id: "900001", username: "bob", is_typing: true });
  type();
  setInterval(type, TYPING_MS);
  /** @type {HTMLElement|null} */ (root.querySelector(".diagram-button"))?.click();
}
