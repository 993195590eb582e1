/**
 * The chats of the signed-in person: names, members, last words, unread counts, people online.
 *
 * The most recent chats have a session each (UAMP §10.2), so the list is live; the server's list is
 * read again now and then for chats that another person began.
 */

import { isMention } from "./notifications/rules.js";
import { people } from "./person/looks.js";
import { gettext } from "./words.js";

const WATCHED = 12;
const LISTED = 200;
const REFRESH_MS = 30_000;
const OVERLAP = 20;
const COUNT_AFTER_MS = 500;

/**
 * @typedef {object} Participant
 * @property {"user"|"agent"} kind
 * @property {string} id
 * @property {string} name
 * @property {string} role
 * @property {string} [trigger]
 * @property {import("./price.js").Pricing|null} [pricing] of an agent
 * @property {boolean} [online]
 *
 * @typedef {object} Chat
 * @property {string} id
 * @property {string} title
 * @property {string} epoch
 * @property {number} last_seq
 * @property {string} latest_at ISO 8601
 * @property {number} unread
 * @property {number} [mentioned] how many of the unread messages mention the person, as far as this page received them
 * @property {boolean} [muted]
 * @property {""|"all"|"mentions"|"none"} [notifications]
 * @property {number} [unread_replies] in threads that the person follows
 * @property {{name: string, content: string}|null} preview
 * @property {Participant[]} participants
 */

/**
 * Events: `change` (anything about the chats), `arrived` (detail: the chat and a new message of another member),
 * `load-error` (detail: ApiError).
 */
export class ChatStore extends EventTarget {
  constructor(api, client, me) {
    super();
    this._api = api;
    this._client = client;
    this._me = me;
    /** @type {Map<string, Chat>} */
    this._chats = new Map();
    this.loaded = false;
    /** @type {Set<string>} ids of the chats whose counts are about to be read */
    this._counting = new Set();
    client.addEventListener("presence", (e) => this._presence(e.detail));
    setInterval(() => document.hidden || this.refresh(), REFRESH_MS);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** @returns {Chat[]} the most recent first */
  get list() {
    return Array.from(this._chats.values()).sort((a, b) => (a.latest_at < b.latest_at ? 1 : -1));
  }

  /** @param {string} id @returns {Chat|undefined} */
  get(id) {
    return this._chats.get(id);
  }

  /** Read the list again. */
  async refresh() {
    try {
      const page = await this._api.get(`/chats?limit=${LISTED}`);
      this._chats = new Map(page.data.map((chat) => [chat.id, this._known(chat)]));
      this.loaded = true;
      this._watch();
      this._changed();
    } catch (error) {
      this.dispatchEvent(new CustomEvent("load-error", { detail: error }));
    }
  }

  /** Read one chat again, for example because its members changed. @returns {Promise<Chat>} */
  async reload(id) {
    const chat = await this._api.get(`/chats/${encodeURIComponent(id)}`);
    this._chats.set(id, this._known(chat));
    this._changed();
    return chat;
  }

  /** Learn who is in a chat, and keep what only this page knows of it. */
  _known(chat) {
    people.learn(chat.participants);
    const known = this._chats.get(chat.id);
    if (known?.mentioned && chat.unread > 0) chat.mentioned = known.mentioned;
    return chat;
  }

  /** @returns {Promise<Chat>} */
  async create(title, users, agents) {
    const chat = await this._api.post("/chats", { title, users, agents });
    this._chats.set(chat.id, chat);
    this._watch();
    this._changed();
    return chat;
  }

  /**
   * The session of a chat, with the list kept up to date by it.
   * @param {Chat} chat
   */
  session({ id, epoch, last_seq: lastSeq }) {
    const known = this._client.chats.has(id);
    // A little earlier than now: the beginning of an answer that still runs names its agent.
    const session = this._client.open(id, { epoch, after: Math.max(0, lastSeq - OVERLAP) });
    if (!known) {
      session.addEventListener("message", (e) => this._message(id, e.detail));
      session.addEventListener("read", (e) => this._read(id, e.detail));
      session.addEventListener("participants", () => this.reload(id));
    }
    return session;
  }

  /** What a chat is called: its title, else the names of the others. */
  nameOf(chat) {
    if (chat.title) return chat.title;
    const others = chat.participants.filter((p) => !this._isMe(p)).map((p) => (p.kind === "user" ? people.nameOf(p.name) : p.name));
    return others.join(", ") || gettext("Notes to self");
  }

  _isMe(participant) {
    return participant.kind === "user" && String(participant.id) === this._me.id;
  }

  /** @param {Chat} chat @returns {Participant[]} all members but oneself */
  others(chat) {
    return chat.participants.filter((participant) => !this._isMe(participant));
  }

  _watch() {
    for (const chat of this.list.slice(0, WATCHED)) this.session(chat);
  }

  _message(id, { message, seq }) {
    const chat = this._chats.get(id);
    if (!chat || seq <= chat.last_seq) return;
    chat.last_seq = seq;
    chat.latest_at = new Date(message.created_at).toISOString();
    if (message.thread && !message.also_in_chat) {
      // Only the server knows whom a reply concerns.
      if (String(message.sender_id) !== this._me.id) this._countLater(id);
      this._changed();
      return;
    }
    chat.preview = { name: message.name, content: message.content };
    const isOwn = message.sender_kind === "user" && String(message.sender_id) === this._me.id;
    if (!isOwn) {
      chat.unread += 1;
      if (isMention(message.content, this._me.username)) chat.mentioned = (chat.mentioned || 0) + 1;
      this.dispatchEvent(new CustomEvent("arrived", { detail: { chat, message } }));
    }
    this._changed();
  }

  /** Read the counts of a chat again, once for replies that come together. @param {string} id */
  _countLater(id) {
    if (this._counting.has(id)) return;
    this._counting.add(id);
    setTimeout(async () => {
      this._counting.delete(id);
      try {
        await this.reload(id);
      } catch (error) {
        // The list is read again now and then.
        if (error.name !== "ApiError") throw error;
      }
    }, COUNT_AFTER_MS);
  }

  _read(id, { user_id: userId, message_id: messageId, thread }) {
    const chat = this._chats.get(id);
    if (!chat || String(userId) !== this._me.id || !messageId) return;
    if (thread) {
      this._countLater(id);
      return;
    }
    chat.unread = 0;
    chat.mentioned = 0;
    this._changed();
  }

  _presence({ type, user_id: userId }) {
    const online = type === "presence.online";
    for (const chat of this._chats.values()) {
      for (const participant of chat.participants) {
        if (participant.kind === "user" && String(participant.id) === String(userId)) {
          participant.online = online;
        }
      }
    }
    this._changed();
  }

  _changed() {
    this.dispatchEvent(new Event("change"));
  }
}
