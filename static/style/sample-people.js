/** The people, agents and chats of the style page. */

import { start } from "../chat/context.js";

export const HOUR = 3_600_000;
export const now = Date.now();
export const ago = (/** @type {number} */ hours) => new Date(now - hours * HOUR).toISOString();
const PRICE = {
  currency: "USD",
  per_answer: "0.02",
  input_per_1k: "0",
  output_per_1k: "0.01",
  tools: { search: "0.05" },
  unfinished: "share",
  expected_tokens: null,
};
const RIGHTS = [
  "describe",
  "rule",
  "invite",
  "add_members",
  "remove_members",
  "change_roles",
  "manage_agents",
  "manage_money",
  "share",
  "pin",
];

export const ME = {
  kind: "user",
  id: start.me.id,
  name: start.me.username,
  role: "owner",
  participant_id: 1,
  online: true,
};
export const BOB = {
  kind: "user",
  id: "900001",
  name: "bob",
  role: "admin",
  participant_id: 2,
  online: true,
  display_name: "Bob Tremblay",
  status_text: "On the train",
};
export const CARO = {
  kind: "user",
  id: "900002",
  name: "caro",
  role: "member",
  participant_id: 3,
  online: false,
};
export const REPORT = {
  kind: "agent",
  id: "agent-1",
  name: "report",
  role: "member",
  participant_id: 4,
  trigger: "mention",
  context: "chat",
  keywords: [],
  pricing: null,
};
export const PAID = {
  kind: "agent",
  id: "agent-2",
  name: "paid-echo",
  role: "member",
  participant_id: 5,
  joined_at: "2026-11-01T09:00:00Z",
  trigger: "keyword",
  context: "last",
  context_messages: 20,
  keywords: ["price"],
  pricing: PRICE,
  takes_calls: true,
  budget: "5.00",
  budget_period: "day",
};

/** @type {any} */
export const CHAT = {
  id: "chat_style",
  title: "Weekend in Lyon",
  description: "Train, museum and supper.",
  payer: "asker",
  rights: RIGHTS,
  epoch: "1",
  last_seq: 40,
  latest_at: ago(0.1),
  unread: 2,
  unread_mentions: 0,
  unread_replies: 0,
  muted: false,
  notifications: "",
  preview: { name: "bob", content: "See you there" },
  participants: [ME, BOB, CARO, REPORT, PAID],
  agents_quiet: true,
  agent_hops: 3,
  avatar: "",
  avatar_url: null,
};
const OTHER = { ...CHAT, description: "", agents_quiet: false, unread: 0 };
export const CHATS = [
  CHAT,
  { ...OTHER, id: "chat_2", title: "Mentions", unread: 7, unread_mentions: 2, latest_at: ago(2) },
  { ...OTHER, id: "chat_3", title: "Muted", unread: 3, muted: true, latest_at: ago(5) },
  {
    ...OTHER,
    id: "chat_4",
    title: "Threads",
    marked_unread: true,
    unread_replies: 4,
    latest_at: ago(26),
  },
  {
    ...OTHER,
    id: "chat_5",
    title: "",
    participants: [ME, CARO],
    preview: null,
    latest_at: ago(50),
  },
  {
    ...OTHER,
    id: "chat_6",
    title: "Picture of its own",
    archived: true,
    avatar: "🎒",
    latest_at: ago(90),
  },
];
