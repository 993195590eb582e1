/** A chat in the list of the signed-in person, and its members, as the server sends them. */

export interface Participant {
  kind: "user" | "agent";
  id: string;
  name: string;
  role: string;
  trigger?: string;
  /** Agents only. */
  pricing?: import("../money/price.js").Pricing | null;
  /** Whether an agent can join a call; false for people of other servers. */
  takes_calls?: boolean;
  online?: boolean;
  participant_id: number;
  /** ISO 8601. */
  joined_at?: string;
  /** People only. */
  display_name?: string;
  /** People only. */
  status_text?: string;
  /** How much of the chat an agent sees. */
  context?: string;
  /** How many messages an agent sees. */
  context_messages?: number | null;
  /** Words that make an agent answer. */
  keywords?: string[];
  /** A decimal string. */
  budget?: string | null;
  budget_period?: string;
}

export interface Chat {
  id: string;
  title: string;
  description?: string;
  /** An emoji, a colour or a picture; empty if it is made from the name. */
  avatar?: string;
  avatar_url?: string | null;
  /** How often in a row agents may ask each other. */
  agent_hops?: number;
  /** Who pays for answers: a name of PAYERS. */
  payer?: string;
  /** Rights of the signed-in person. */
  rights: string[];
  only_owners_pin?: boolean;
  /** The other server that owns the chat: actions whose effect its people would not see are not offered. */
  home?: string | null;
  agents_quiet?: boolean;
  epoch: string;
  last_seq: number;
  /** ISO 8601. */
  latest_at: string;
  unread: number;
  /** How many of the unread messages mention the person. */
  unread_mentions?: number;
  muted?: boolean;
  /** In the list of the signed-in person. */
  pinned?: boolean;
  archived?: boolean;
  marked_unread?: boolean;
  notifications?: "" | "all" | "mentions" | "none";
  /** In threads that the person follows. */
  unread_replies?: number;
  preview: { name: string; content: string } | null;
  /** The chat whose history comes first. */
  forked_from?: { chat_id: string | null; readable: boolean } | null;
  participants: Participant[];
}
