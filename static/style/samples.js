/** What the style page shows: a chat, its members and messages, and what the server would answer about them. */

import { start } from "../chat/context.js";

const HOUR = 3_600_000;
const now = Date.now();
const ago = (/** @type {number} */ hours) => new Date(now - hours * HOUR).toISOString();
const PRICE = { currency: "USD", per_answer: "0.02", input_per_1k: "0", output_per_1k: "0.01", tools: { search: "0.05" }, unfinished: "share", expected_tokens: null };
const RIGHTS = ["describe", "rule", "invite", "add_members", "remove_members", "change_roles", "manage_agents", "manage_money", "share", "pin"];

const ME = { kind: "user", id: start.me.id, name: start.me.username, role: "owner", participant_id: 1, online: true };
const BOB = { kind: "user", id: "900001", name: "bob", role: "admin", participant_id: 2, online: true, display_name: "Bob Tremblay", status_text: "On the train" };
const CARO = { kind: "user", id: "900002", name: "caro", role: "member", participant_id: 3, online: false };
const REPORT = { kind: "agent", id: "agent-1", name: "report", role: "member", participant_id: 4, trigger: "mention", context: "chat", keywords: [], pricing: null };
const PAID = { kind: "agent", id: "agent-2", name: "paid-echo", role: "member", participant_id: 5, joined_at: "2026-11-01T09:00:00Z", trigger: "keyword", context: "last", context_messages: 20, keywords: ["price"], pricing: PRICE, takes_calls: true, budget: "5.00", budget_period: "day" };

/** @type {any} */
export const CHAT = {
  id: "chat_style", title: "Weekend in Lyon", description: "Train, museum and supper.", payer: "asker", rights: RIGHTS, epoch: "1", last_seq: 40, latest_at: ago(0.1),
  unread: 2, unread_mentions: 0, unread_replies: 0, muted: false, notifications: "", preview: { name: "bob", content: "See you there" }, participants: [ME, BOB, CARO, REPORT, PAID],
  agents_quiet: true, agent_hops: 3, avatar: "", avatar_url: null,
};
const OTHER = { ...CHAT, description: "", agents_quiet: false, unread: 0 };
const CHATS = [
  CHAT,
  { ...OTHER, id: "chat_2", title: "Mentions", unread: 7, unread_mentions: 2, latest_at: ago(2) },
  { ...OTHER, id: "chat_3", title: "Muted", unread: 3, muted: true, latest_at: ago(5) },
  { ...OTHER, id: "chat_4", title: "Threads", marked_unread: true, unread_replies: 4, latest_at: ago(26) },
  { ...OTHER, id: "chat_5", title: "", participants: [ME, CARO], preview: null, latest_at: ago(50) },
  { ...OTHER, id: "chat_6", title: "Picture of its own", archived: true, avatar: "🎒", latest_at: ago(90) },
];

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
const tool = (/** @type {string} */ id, /** @type {string} */ name, /** @type {object} */ given) => ({ type: "tool_call", tool_call: { id, name, arguments: JSON.stringify(given) } });
const result = (/** @type {string} */ id, /** @type {object} */ more) => ({ type: "tool_result", tool_result: { call_id: id, ...more } });

let seq = 0;
/** @param {string} id @param {any} sender @param {string} content @param {Record<string, any>} [more] */
function message(id, sender, content, more = {}) {
  seq += 1;
  return {
    id, seq, role: sender.kind === "agent" ? "assistant" : "user", content, content_items: null, name: sender.name, sender_id: sender.id, sender_kind: sender.kind,
    created_at: ago(seq < 4 ? 30 : 3 - seq / 10), response_id: sender.kind === "agent" ? `response_${id}` : null, status: "completed", transport: "websocket", ...more,
  };
}
const FACES = [{ kind: "user", id: BOB.id, name: "bob" }, { kind: "agent", id: REPORT.id, name: "report" }];

export const MESSAGES = [
  message("root", BOB, MARKDOWN, {
    pinned: true, replies: { replies: 3, last_at: ago(1), last_seq: 60, participants: FACES, following: true, read_seq: 50 },
    reactions: [{ emoji: "🎉", count: 2, own: true, users: [{ id: ME.id, name: ME.name }, { id: CARO.id, name: "caro" }] }, { emoji: "👀", count: 1, own: false, users: [{ id: CARO.id, name: "caro" }] }],
  }),
  message("follows", BOB, `A second message of the same person has no head of its own, @${ME.name}.`),
  message("quiet-replies", CARO, "A thread without new replies.", { replies: { replies: 1, last_at: ago(20), last_seq: 9, participants: FACES, following: false, read_seq: 9 } }),
  message("mine", ME, "My own message, which was edited.", { revision: 1, edited_at: ago(2) }),
  message("quoting", ME, "I answer a message.", { reply_to: { id: "root", name: "bob", content: "Plan for Saturday" } }),
  message("deleted", CARO, "", { deleted_at: ago(1) }),
  message("mine-deleted", ME, "", { deleted_at: ago(1) }),
  message("from-thread", CARO, "A reply that the chat shows too.", { thread: "root", also_in_chat: true }),
  message("files", BOB, "Files and a voice note.", {
    content_items: [
      { type: "text", text: "Files and a voice note." },
      { type: "file", file: { url: `${CONTENT}1` }, filename: "costs.csv", mime_type: "text/csv", size_bytes: 4200 },
      { type: "file", file: { url: `${CONTENT}2` }, filename: "tickets.zip", mime_type: "application/zip", size_bytes: 42_000_000 },
      { type: "audio", audio: { url: `${CONTENT}3` }, filename: "Voice note", mime_type: "audio/webm" },
      { type: "video", video: { url: `${CONTENT}4` }, filename: "film.mp4", mime_type: "video/mp4" },
    ],
  }),
  message("editing", ME, "This message is being edited."),
  message("long", CARO, "A long message is folded. ".repeat(200)),
  message("done", REPORT, "The report is done.", {
    transport: "a2a", version_of: "done-0",
    content_items: [
      { type: "thinking", thinking: "First the totals, then the chart." },
      tool("t1", "csv_report", { file: "costs.csv" }), result("t1", { result: JSON.stringify({ rows: 12 }), duration_ms: 2400, content_items: [{ type: "file", file: { url: `${CONTENT}5` }, filename: "chart.svg", mime_type: "image/svg+xml" }] }),
      tool("t2", "search", { query: "Lyon" }), result("t2", { result: JSON.stringify({ error: "The search is not reached." }), is_error: true, duration_ms: 300 }),
      tool("t3", "delegate", { agent: "darkroom", task: "Turn the picture." }), result("t3", { result: "\"Turned.\"", duration_ms: 65_000 }),
      { type: "text", text: "The report is done." },
    ],
  }),
  message("stopped", REPORT, "One, two", { status: "cancelled", content_items: [tool("t4", "count", { to: 9 }), { type: "text", text: "One, two" }] }),
  message("question", ME, "@report is it going to rain?"),
  message("failed", REPORT, "I look", { status: "failed" }),
  message("paid", PAID, "An answer with a price.", {
    transport: "completions", signature: null,
    content_items: [tool("t5", "search", { query: "Lyon" }), result("t5", { result: "\"Found.\"", duration_ms: 900 }), { type: "text", text: "An answer with a price." }],
  }),
  message("refunded", PAID, "An answer whose price was given back."),
  message("diagram", BOB, "```mermaid\nflowchart LR\n  Ask --> Answer\n```"),
  message("last", BOB, "See you there"),
];
const REPLIES = [message("reply-1", BOB, "A reply.", { thread: "root" }), message("reply-2", ME, "My reply, which the chat shows too.", { thread: "root", also_in_chat: true })];

const FACTS = [
  { seq: 3.5, type: "participant.joined", payload: { participant: REPORT, by: { id: ME.id, name: ME.name } } },
  { seq: 13.5, type: "response.cancelled", payload: { response_id: "response_stopped", user_id: BOB.id, username: "bob" } },
  { seq: 15.5, type: "response.error", payload: { response_id: "response_failed", error: { code: "model_error", message: "The weather is not known." } } },
];
const receipt = (/** @type {string} */ id, /** @type {object} */ more) => ({
  response_id: id, amount: "0.02", refunded: "0", fee: "0.002", currency: "USD", input_tokens: 120, output_tokens: 480, tools: 1, paid_by: "you", paid_at: ago(1), transfers: ["tr_0001"], ...more,
});
const RECEIPTS = [
  receipt("response_paid", { delegated: [{ ...receipt("response_x", { amount: "0.01" }), agent: "darkroom" }] }),
  receipt("response_refunded", { refunded: "0.02", unfinished: "none" }),
];
const LINK = { id: "1", created_by: "bob", expires_at: ago(-100), state: "active", role: "member", most_uses: 10, used_count: 2, grows: true, opened_count: 4 };
const DAYS = Array.from({ length: 30 }, (_, day) => ({ day: new Date(now - (29 - day) * 24 * HOUR).toISOString().slice(0, 10), amount: day % 4 ? "0.00" : `0.${10 + day}` }));
const MOVED = [["-0.02", "answer", ""], ["0.02", "refund", ""], ["5.00", "top_up", "Card"]].map(([amount, kind, memo], at) => ({ at: ago(at + 1), amount, kind, memo, agent_id: PAID.id, chat_id: at ? "" : CHAT.id }));
const CALL = { curl: "curl -H \"Authorization: Bearer $KEY\" …", in_chat: true };

/** By the beginning of a path, the first that fits. @type {[RegExp, (path: string) => unknown][]} */
const ANSWERS = [
  [/^\/chats\?/, () => ({ data: CHATS })],
  [/^\/chats\/[^/]+\/messages\?.*thread=root/, () => ({ data: REPLIES.toReversed(), has_more: false })],
  [/^\/chats\/[^/]+\/messages\?/, () => ({ data: MESSAGES.toReversed(), has_more: false })],
  [/^\/chats\/[^/]+\/receipts/, () => ({ data: [{ user_id: BOB.id, username: "bob", seq: 17 }, { user_id: CARO.id, username: "caro", seq: 17 }, { user_id: ME.id, username: ME.name, seq: 16 }] })],
  [/^\/chats\/[^/]+\/payments/, () => ({ data: RECEIPTS })],
  [/^\/chats\/[^/]+\/events/, (path) => ({ data: path.includes("participant.joined") ? FACTS : [] })],
  [/^\/chats\/[^/]+\/pins/, () => ({ data: MESSAGES.filter((one) => "pinned" in one) })],
  [/^\/chats\/[^/]+\/pool/, () => ({ available: "4.50", held: "0.20", currency: "USD" })],
  [/^\/chats\/[^/]+\/(invite|share)-links/, () => ({ data: [LINK] })],
  [/^\/chats\/[^/]+\/call$/, () => {
    // As if the server were out of reach: the calls stay as they are.
    throw new TypeError("No answer.");
  }],
  [/^\/chats\/[^/]+$/, (path) => CHATS.find(({ id }) => path.endsWith(id))],
  [/^\/messages\/[^/]+\/versions/, () => ({ data: [{ ...message("done-0", REPORT, "An earlier version."), seq: 11.5, version_of: "done-0" }] })],
  [/^\/messages\/[^/]+\/revisions/, () => ({ data: [{ revision: 0, content: "As it was sent.", created_at: ago(3) }, { revision: 1, content: "As it is now.", created_at: ago(2) }] })],
  [/^\/contents\/[^/]+\/transcript/, () => ({ state: "done", text: "We meet at the station at half past eight." })],
  [/^\/messages\/root\/link-cards/, () => ({ cards: [{ url: "https://example.org/", title: "Lunch at the museum", description: "Open from eleven to three.", site: "Example" }], pending: false })],
  [/^\/messages\/[^/]+\/frames/, () => ({ protocols: [{ key: "uamp", label: "UAMP", title: "Frames of the socket", frames: [{ type: "message.created" }], is_cut: true, call: CALL }, { key: "a2a", label: "A2A", title: "JSON-RPC", frames: [], is_cut: false, call: null }] })],
  [/^\/messages\/[^/?]+$/, (path) => [...MESSAGES, ...REPLIES].find(({ id }) => path.endsWith(`/${id}`))],
  [/^\/invitations/, () => ({ data: [{ id: "1", direction: "received", person: "dana@other.example", title: "Reading group" }, { id: "2", direction: "sent", person: "erik@other.example", title: "" }] })],
  [/^\/agents/, () => ({ data: [{ ...REPORT, description: "Makes a report and a chart of a CSV file." }, { ...PAID, description: "Repeats your words." }, { id: "agent-3", name: "darkroom", description: "Edits pictures." }] })],
  [/^\/users/, () => ({ data: [{ username: "bob" }, { username: "dana" }] })],
  [/^\/search/, () => ({ data: MESSAGES.slice(0, 2).map((one) => ({ ...one, chat_id: CHAT.id, content_items: [{ type: "file", filename: "costs.csv" }] })), has_more: false, searched_chats: 5, chats: 6 })],
  [/^\/threads/, () => ({ data: MESSAGES.slice(0, 2).map((one, at) => ({ ...one, chat_id: CHAT.id, chat_title: "", replies: 3, unread: 2 - 2 * at, last_at: ago(at + 1), participants: [] })), next_cursor: "2" })],
  [/^\/me/, () => start.settings],
  [/^\/api\/content\//, () => "What,Cost\nTrain,42.00\nMuseum,18.50\n"],
  [/^\/api\/payments\/balance/, () => ({ available: "0.41", held: "0.06", posted: "0.47", currency: "USD" })],
  [/^\/api\/payments\/limits/, () => ({ limits: [{ period: "day", amount: "2.00", left: "1.98", currency: "USD", resets_at: ago(-8) }, { period: "week", agent: "paid-echo", agent_id: PAID.id, amount: "1.00", left: "0.40", currency: "USD", resets_at: ago(-80) }] })],
  [/^\/api\/payments\/approvals/, () => ({ approvals: [{ agent: "paid-echo", agent_id: PAID.id, up_to: "0.05", currency: "USD" }] })],
  [/^\/api\/payments\/tokens/, () => ({ items: [{ id: "tok_000000000000001", name: "", balance: "3.00", currency: "USD", status: "active", expiresAt: ago(-300), parentId: "tok_0" }, { id: "tok_2", name: "Nightly report", balance: "0.00", currency: "USD", status: "ended" }] })],
  [/^\/api\/payments\/topups\/providers/, () => ({ providers: [{ name: "card", label: "Pay by card" }] })],
  [/^\/api\/payments\/topups/, () => ({ items: [{ created_at: ago(30), amount: "5.00", currency: "USD", state: "refused", reason: "The card was refused.", url: "" }, { created_at: ago(2), amount: "5.00", currency: "USD", state: "open", reason: "", url: "/money" }] })],
  [/^\/api\/payments\/spend/, () => ({ days: DAYS, agents: [{ agent: "paid-echo", amount: "1.32", charges: 66 }, { agent: "", amount: "0.10", charges: 1 }], currency: "USD", total: "1.42" })],
  [/^\/api\/payments\/statement/, () => ({ data: MOVED, currency: "USD", has_more: true, next_cursor: "2" })],
];

/** @param {string} path below the API */
export const answerOf = (path) => ANSWERS.find(([pattern]) => pattern.test(path))?.[1](path);
