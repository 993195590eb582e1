/** The messages of the style page, and the events between them in its log. */

import { BOB, CARO, ME, PAID, REPORT, ago } from "./sample-people.js";

const MARKDOWN = `## Plan for Saturday

1. Train at **08:40**, *platform 4*, ~~not 5~~
2. Museum, then [lunch](https://example.org/)

- [x] Tickets
- [ ] A table for six

| What | Cost |
| --- | ---: |
| Train | $42.00 |

\`\`\`python
@cached
def share(total: int) -> str:
    # Cents
    return f"{total // 6} each"
\`\`\`

> The museum closes at \`17:00\`.

$$\\bar{c} = \\frac{1}{n}\\sum_{i=1}^{n} c_i$$

---

That is all.`;

const CONTENT = "/api/content/00000000-0000-4000-8000-00000000000";
const tool = (
  /** @type {string} */ id,
  /** @type {string} */ name,
  /** @type {object} */ given,
) => ({ type: "tool_call", tool_call: { id, name, arguments: JSON.stringify(given) } });
const result = (/** @type {string} */ id, /** @type {object} */ more) => ({
  type: "tool_result",
  tool_result: { call_id: id, ...more },
});

let seq = 0;
/**
 * @param {string} id
 * @param {any} sender
 * @param {string} content
 * @param {Record<string, any>} [more]
 */
export function message(id, sender, content, more = {}) {
  seq += 1;
  return {
    id,
    seq,
    role: sender.kind === "agent" ? "assistant" : "user",
    content,
    content_items: null,
    name: sender.name,
    sender_id: sender.id,
    sender_kind: sender.kind,
    created_at: ago(seq < 4 ? 30 : 3 - seq / 10),
    response_id: sender.kind === "agent" ? `response_${id}` : null,
    status: "completed",
    transport: "websocket",
    ...more,
  };
}
const FACES = [
  { kind: "user", id: BOB.id, name: "bob" },
  { kind: "agent", id: REPORT.id, name: "report" },
];

export const MESSAGES = [
  message("root", BOB, MARKDOWN, {
    pinned: true,
    replies: {
      replies: 3,
      last_at: ago(1),
      last_seq: 60,
      participants: FACES,
      following: true,
      read_seq: 50,
    },
    reactions: [
      {
        emoji: "🎉",
        count: 2,
        own: true,
        users: [
          { id: ME.id, name: ME.name },
          { id: CARO.id, name: "caro" },
        ],
      },
      { emoji: "👀", count: 1, own: false, users: [{ id: CARO.id, name: "caro" }] },
    ],
  }),
  message(
    "follows",
    BOB,
    `A second message of the same person has no head of its own, @${ME.name}.`,
  ),
  message("quiet-replies", CARO, "A thread without new replies.", {
    replies: {
      replies: 1,
      last_at: ago(20),
      last_seq: 9,
      participants: FACES,
      following: false,
      read_seq: 9,
    },
  }),
  message("mine", ME, "My own message, which was edited.", { revision: 1, edited_at: ago(2) }),
  message("quoting", ME, "I answer a message.", {
    reply_to: { id: "root", name: "bob", content: "Plan for Saturday" },
  }),
  message("deleted", CARO, "", { deleted_at: ago(1) }),
  message("mine-deleted", ME, "", { deleted_at: ago(1) }),
  message("from-thread", CARO, "A reply that the chat shows too.", {
    thread: "root",
    also_in_chat: true,
  }),
  message("files", BOB, "Files and a voice note.", {
    content_items: [
      { type: "text", text: "Files and a voice note." },
      {
        type: "file",
        file: { url: `${CONTENT}1` },
        filename: "costs.csv",
        mime_type: "text/csv",
        size_bytes: 4200,
      },
      {
        type: "file",
        file: { url: `${CONTENT}2` },
        filename: "tickets.zip",
        mime_type: "application/zip",
        size_bytes: 42_000_000,
      },
      {
        type: "audio",
        audio: { url: `${CONTENT}3` },
        filename: "Voice note",
        mime_type: "audio/webm",
      },
      {
        type: "video",
        video: { url: `${CONTENT}4` },
        filename: "film.mp4",
        mime_type: "video/mp4",
      },
    ],
  }),
  message("editing", ME, "This message is being edited."),
  message("long", CARO, "A long message is folded. ".repeat(200)),
  message("done", REPORT, "The report is done.", {
    transport: "a2a",
    version_of: "done-0",
    content_items: [
      { type: "thinking", thinking: "First the totals, then the chart." },
      tool("t1", "csv_report", { file: "costs.csv" }),
      result("t1", {
        result: JSON.stringify({ rows: 12 }),
        duration_ms: 2400,
        content_items: [
          {
            type: "file",
            file: { url: `${CONTENT}5` },
            filename: "chart.svg",
            mime_type: "image/svg+xml",
          },
        ],
      }),
      tool("t2", "search", { query: "Lyon" }),
      result("t2", {
        result: JSON.stringify({ error: "The search is not reached." }),
        is_error: true,
        duration_ms: 300,
      }),
      tool("t3", "delegate", { agent: "darkroom", task: "Turn the picture." }),
      result("t3", { result: '"Turned."', duration_ms: 65_000 }),
      { type: "text", text: "The report is done." },
    ],
  }),
  message("stopped", REPORT, "One, two", {
    status: "cancelled",
    content_items: [tool("t4", "count", { to: 9 }), { type: "text", text: "One, two" }],
  }),
  message("question", ME, "@report is it going to rain?"),
  message("failed", REPORT, "I look", { status: "failed" }),
  message("paid", PAID, "An answer with a price.", {
    transport: "completions",
    signature: null,
    content_items: [
      tool("t5", "search", { query: "Lyon" }),
      result("t5", { result: '"Found."', duration_ms: 900 }),
      { type: "text", text: "An answer with a price." },
    ],
  }),
  message("refunded", PAID, "An answer whose price was given back."),
  message("diagram", BOB, "```mermaid\nflowchart LR\n  Ask --> Answer\n```"),
  message("last", BOB, "See you there"),
];
export const REPLIES = [
  message("reply-1", BOB, "A reply.", { thread: "root" }),
  message("reply-2", ME, "My reply, which the chat shows too.", {
    thread: "root",
    also_in_chat: true,
  }),
];

export const FACTS = [
  {
    seq: 3.5,
    type: "participant.joined",
    payload: { participant: REPORT, by: { id: ME.id, name: ME.name } },
  },
  {
    seq: 13.5,
    type: "response.cancelled",
    payload: { response_id: "response_stopped", user_id: BOB.id, username: "bob" },
  },
  {
    seq: 15.5,
    type: "response.error",
    payload: {
      response_id: "response_failed",
      error: { code: "model_error", message: "The weather is not known." },
    },
  },
];
