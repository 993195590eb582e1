/** Sample answers to the style page's requests: its chats and messages, with related data. */

import { start } from "../chat/context.js";
import { FACTS, MESSAGES, REPLIES, message } from "./sample-messages.js";
import { BOB, CARO, CHAT, CHATS, HOUR, ME, PAID, REPORT, ago, now } from "./sample-people.js";

const receipt = (/** @type {string} */ id, /** @type {object} */ more) => ({
  response_id: id,
  amount: "0.02",
  refunded: "0",
  fee: "0.002",
  currency: "USD",
  input_tokens: 120,
  output_tokens: 480,
  tools: 1,
  paid_by: "you",
  paid_at: ago(1),
  transfers: ["tr_0001"],
  ...more,
});
const RECEIPTS = [
  receipt("response_paid", {
    delegated: [{ ...receipt("response_x", { amount: "0.01" }), agent: "darkroom" }],
  }),
  receipt("response_refunded", { refunded: "0.02", unfinished: "none" }),
];
const LINK = {
  id: "1",
  created_by: "bob",
  expires_at: ago(-100),
  state: "active",
  role: "member",
  most_uses: 10,
  used_count: 2,
  grows: true,
  opened_count: 4,
};
const DAYS = Array.from({ length: 30 }, (_, day) => ({
  day: new Date(now - (29 - day) * 24 * HOUR).toISOString().slice(0, 10),
  amount: day % 4 ? "0.00" : `0.${10 + day}`,
}));
const MOVED = [
  ["-0.02", "answer", ""],
  ["0.02", "refund", ""],
  ["5.00", "top_up", "Card"],
].map(([amount, kind, memo], at) => ({
  at: ago(at + 1),
  amount,
  kind,
  memo,
  agent_id: PAID.id,
  chat_id: at ? "" : CHAT.id,
}));
const CALL = { curl: 'curl -H "Authorization: Bearer $KEY" …', in_chat: true };

/**
 * Answers by the beginning of a path; the first match applies.
 * @type {[RegExp, (path: string) => unknown][]}
 */
const ANSWERS = [
  [/^\/chats\?/, () => ({ data: CHATS })],
  [
    /^\/chats\/[^/]+\/messages\?.*thread=root/,
    () => ({ data: REPLIES.toReversed(), has_more: false }),
  ],
  [/^\/chats\/[^/]+\/messages\?/, () => ({ data: MESSAGES.toReversed(), has_more: false })],
  [
    /^\/chats\/[^/]+\/receipts/,
    () => ({
      data: [
        { user_id: BOB.id, username: "bob", seq: 17 },
        { user_id: CARO.id, username: "caro", seq: 17 },
        { user_id: ME.id, username: ME.name, seq: 16 },
      ],
    }),
  ],
  [/^\/chats\/[^/]+\/payments/, () => ({ data: RECEIPTS })],
  [
    /^\/chats\/[^/]+\/events/,
    (path) => ({ data: path.includes("participant.joined") ? FACTS : [] }),
  ],
  [/^\/chats\/[^/]+\/pins/, () => ({ data: MESSAGES.filter((one) => "pinned" in one) })],
  [/^\/chats\/[^/]+\/pool/, () => ({ available: "4.50", held: "0.20", currency: "USD" })],
  [/^\/chats\/[^/]+\/(invite|share)-links/, () => ({ data: [LINK] })],
  [
    /^\/chats\/[^/]+\/call$/,
    () => {
      // As if the server were unreachable: the calls stay as they are.
      throw new TypeError("No answer.");
    },
  ],
  [/^\/chats\/[^/]+$/, (path) => CHATS.find(({ id }) => path.endsWith(id))],
  [
    /^\/messages\/[^/]+\/versions/,
    () => ({
      data: [
        { ...message("done-0", REPORT, "An earlier version."), seq: 11.5, version_of: "done-0" },
      ],
    }),
  ],
  [
    /^\/messages\/[^/]+\/revisions/,
    () => ({
      data: [
        { revision: 0, content: "As it was sent.", created_at: ago(3) },
        { revision: 1, content: "As it is now.", created_at: ago(2) },
      ],
    }),
  ],
  [
    /^\/contents\/[^/]+\/transcript/,
    () => ({ state: "done", text: "We meet at the station at half past eight." }),
  ],
  [
    /^\/messages\/root\/link-cards/,
    () => ({
      cards: [
        {
          url: "https://example.org/",
          title: "Lunch at the museum",
          description: "Open from eleven to three.",
          site: "Example",
        },
      ],
      pending: false,
    }),
  ],
  [
    /^\/messages\/[^/]+\/frames/,
    () => ({
      protocols: [
        {
          key: "uamp",
          label: "UAMP",
          title: "Frames of the socket",
          frames: [{ type: "message.created" }],
          is_cut: true,
          call: CALL,
        },
        { key: "a2a", label: "A2A", title: "JSON-RPC", frames: [], is_cut: false, call: null },
      ],
    }),
  ],
  [
    /^\/messages\/[^/?]+$/,
    (path) => [...MESSAGES, ...REPLIES].find(({ id }) => path.endsWith(`/${id}`)),
  ],
  [
    /^\/invitations/,
    () => ({
      data: [
        { id: "1", direction: "received", person: "dana@other.example", title: "Reading group" },
        { id: "2", direction: "sent", person: "erik@other.example", title: "" },
      ],
    }),
  ],
  [
    /^\/agents/,
    () => ({
      data: [
        { ...REPORT, description: "Makes a report and a chart of a CSV file." },
        { ...PAID, description: "Repeats your words." },
        { id: "agent-3", name: "darkroom", description: "Edits pictures." },
      ],
    }),
  ],
  [/^\/users/, () => ({ data: [{ username: "bob" }, { username: "dana" }] })],
  [
    /^\/search/,
    () => ({
      data: MESSAGES.slice(0, 2).map((one) => ({
        ...one,
        chat_id: CHAT.id,
        content_items: [{ type: "file", filename: "costs.csv" }],
      })),
      has_more: false,
      searched_chats: 5,
      chats: 6,
    }),
  ],
  [
    /^\/threads/,
    () => ({
      data: MESSAGES.slice(0, 2).map((one, at) => ({
        ...one,
        chat_id: CHAT.id,
        chat_title: "",
        replies: 3,
        unread: 2 - 2 * at,
        last_at: ago(at + 1),
        participants: [],
      })),
      next_cursor: "2",
    }),
  ],
  [/^\/me/, () => start.settings],
  [/^\/api\/content\//, () => "What,Cost\nTrain,42.00\nMuseum,18.50\n"],
  [
    /^\/api\/payments\/balance/,
    () => ({ available: "0.41", held: "0.06", posted: "0.47", currency: "USD" }),
  ],
  [
    /^\/api\/payments\/limits/,
    () => ({
      limits: [
        { period: "day", amount: "2.00", left: "1.98", currency: "USD", resets_at: ago(-8) },
        {
          period: "week",
          agent: "paid-echo",
          agent_id: PAID.id,
          amount: "1.00",
          left: "0.40",
          currency: "USD",
          resets_at: ago(-80),
        },
      ],
    }),
  ],
  [
    /^\/api\/payments\/approvals/,
    () => ({
      approvals: [{ agent: "paid-echo", agent_id: PAID.id, up_to: "0.05", currency: "USD" }],
    }),
  ],
  [
    /^\/api\/payments\/tokens/,
    () => ({
      items: [
        {
          id: "tok_000000000000001",
          name: "",
          balance: "3.00",
          currency: "USD",
          status: "active",
          expiresAt: ago(-300),
          parentId: "tok_0",
        },
        { id: "tok_2", name: "Nightly report", balance: "0.00", currency: "USD", status: "ended" },
      ],
    }),
  ],
  [
    /^\/api\/payments\/topups\/providers/,
    () => ({ providers: [{ name: "card", label: "Pay by card" }] }),
  ],
  [
    /^\/api\/payments\/topups/,
    () => ({
      items: [
        {
          created_at: ago(30),
          amount: "5.00",
          currency: "USD",
          state: "refused",
          reason: "The card was refused.",
          url: "",
        },
        {
          created_at: ago(2),
          amount: "5.00",
          currency: "USD",
          state: "open",
          reason: "",
          url: "/money",
        },
      ],
    }),
  ],
  [
    /^\/api\/payments\/spend/,
    () => ({
      days: DAYS,
      agents: [
        { agent: "paid-echo", amount: "1.32", charges: 66 },
        { agent: "", amount: "0.10", charges: 1 },
      ],
      currency: "USD",
      total: "1.42",
    }),
  ],
  [
    /^\/api\/payments\/statement/,
    () => ({ data: MOVED, currency: "USD", has_more: true, next_cursor: "2" }),
  ],
  [
    // The log of the sample chat begins with its second entry.
    /^\/chats\/[^/]+\/export/,
    () =>
      [
        { type: "chat", id: "chat_style" },
        {
          type: "entry",
          seq: 2,
          event_type: "chat.updated",
          response_id: "",
          at: 0,
          event: {},
          chain_hash: null,
        },
        { type: "end", count: 0 },
      ]
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
  ],
];

/** @param {string} path below the API */
export const answerOf = (path) => ANSWERS.find(([pattern]) => pattern.test(path))?.[1](path);
