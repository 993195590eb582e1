/**
 * The signed-in user's chats: names, members, last messages, unread counts, people online.
 *
 * The connection watches all of them (`chats.watch`), so the list is live whichever chat is open.
 * It is loaded once the connection is open, and again after each reconnect.
 */

import { isApiError, isUnreached } from "./api.js";
import { people } from "./person/looks.js";
import { namesOf } from "./person/names.js";
import { Profiles } from "./person/profiles.js";
import { Presences } from "./store/presences.js";
import { readReplies, replied } from "./store/unread-replies.js";

const LISTED = 200;
const OVERLAP = 20;
const TOGETHER_MS = 300;

/** @typedef {import("./store/chat.js").Chat} Chat */
/** @typedef {import("./store/chat.js").Participant} Participant */

/**
 * Events: `change` (anything about the chats), `removed` (detail: the id of a chat that the user is
 * no longer in), `arrived` (detail: the chat and a new message of another member), `load-error`
 * (detail: ApiError).
 */
export class ChatStore extends EventTarget {
  /**
   * @param {import("./api.js").Api} api
   * @param {import("../uamp/client.js").UampClient} client
   * @param {{id: string}} me
   * @param {Pick<import("./offline/offline-chats.js").OfflineChats, "list"|"chat">} [kept] shown
   *   when the server cannot be reached
   */
  constructor(
    api,
    client,
    me,
    kept = { list: async () => undefined, chat: async () => undefined },
  ) {
    super();
    this._api = api;
    this._client = client;
    this._me = me;
    this._kept = kept;
    /** @type {Map<string, Chat>} */
    this._chats = new Map();
    /** Whether the list comes from the server. */
    this.loaded = false;
    /** Whether there is a list at all: the server's, or this device's copy. */
    this.hasList = false;
    /** @type {Set<string>} ids of the chats about to be refetched */
    this._waiting = new Set();
    /** Orders events in time: the start of each read, and each live event. */
    this._clock = 0;
    /** @type {Map<string, number>} when the last live event of a chat came, by the chat's id */
    this._liveAt = new Map();
    /** @type {Map<string, number>} when the read of a chat began, by the chat's id */
    this._readAt = new Map();
    this._presences = new Presences();
    this._profiles = new Profiles();
    /** @type {Map<string, number>} when the user ceased to be in a chat, by the chat's id */
    this._removedAt = new Map();
    client.addEventListener("presence", (/** @type {any} */ { detail }) => this._presence(detail));
    client.addEventListener("watched", () => this.refresh());
    client.addEventListener("activity", (/** @type {any} */ { detail }) => this._activity(detail));
    client.addEventListener("read", (/** @type {any} */ { detail }) =>
      this._read(detail.chat_id, detail),
    );
    client.addEventListener("person", (/** @type {any} */ { detail }) => this._person(detail));
    client.addEventListener("profile", (/** @type {any} */ { detail }) => this._profile(detail));
    // Without a connection, the list is shown all the same.
    client.addEventListener(
      "state",
      (/** @type {any} */ { detail: { phase } }) =>
        this.loaded || ["connecting", "open"].includes(phase) || this.refresh(),
    );
    client.watch();
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
    const began = ++this._clock;
    try {
      const page = await this._api.get(`/chats?limit=${LISTED}`);
      const chats = page.data
        .filter((/** @type {Chat} */ { id }) => (this._removedAt.get(id) ?? 0) < began)
        .map((/** @type {Chat} */ chat) => this._newer(chat, began));
      const since = this.list.filter(({ id }) => (this._readAt.get(id) ?? 0) > began);
      this._chats = new Map([...since, ...chats].map((chat) => [chat.id, chat]));
      const isFirst = !this.loaded;
      this.loaded = this.hasList = true;
      this._changed();
      if (isFirst) await this._sendLeftTurns();
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (isUnreached(error) && !this.hasList) await this._showKept();
      this.dispatchEvent(new CustomEvent("load-error", { detail: error }));
    }
  }

  /** Show this device's copy of the list; all of its people count as offline. */
  async _showKept() {
    const chats = await this._kept.list();
    if (!chats || this.hasList) return;
    this.hasList = true;
    for (const chat of chats) if (!this._chats.has(chat.id)) this._takeKept(chat);
    this._changed();
  }

  /** @param {Chat} chat */
  _takeKept(chat) {
    for (const participant of chat.participants) participant.online = false;
    people.learn(chat.participants);
    this._chats.set(chat.id, chat);
  }

  /**
   * Find a chat to open: in memory, else on the server, else in this device's cache.
   * @param {string} id
   * @returns {Promise<Chat>}
   */
  async find(id) {
    const known = this._chats.get(id);
    if (known) return known;
    try {
      return await this.reload(id);
    } catch (error) {
      const kept = isUnreached(error) ? await this._kept.chat(id) : undefined;
      if (!kept) throw error;
      this._takeKept(kept.chat);
      this._changed();
      return kept.chat;
    }
  }

  /** Open the chats for which an earlier page left unsent turns: an open chat sends its own. */
  async _sendLeftTurns() {
    const { outbox } = this._client;
    for (const id of new Set(outbox.turns.map(({ chatId }) => chatId))) {
      try {
        this.session(this._chats.get(id) ?? (await this.reload(id)));
      } catch (error) {
        if (!isApiError(error) || error.status !== 404) throw error;
        outbox.drop(id);
      }
    }
  }

  /**
   * Refetch one chat, for example because its members changed.
   * @param {string} id
   * @returns {Promise<Chat>}
   */
  async reload(id) {
    const began = ++this._clock;
    const chat = this._newer(await this._api.get(`/chats/${encodeURIComponent(id)}`), began);
    if ((this._removedAt.get(id) ?? 0) < began) this._chats.set(id, chat);
    this._changed();
    return chat;
  }

  /**
   * Merge a fetched chat with the known one. Live events that came during the read may be missing
   * in it, and a read that began later may have ended earlier.
   * @param {Chat} read
   * @param {number} began
   * @returns {Chat}
   */
  _newer(read, began) {
    const { id } = read;
    if ((this._liveAt.get(id) ?? 0) > began) this._readLater(id);
    const known = this._chats.get(id);
    if (known && (this._readAt.get(id) ?? 0) > began) return known;
    this._readAt.set(id, began);
    return this._known(read, began);
  }

  /**
   * Record who is in a chat, and which of them changed, came or went while it was read.
   * @param {Chat} chat
   * @param {number} began
   */
  _known(chat, began) {
    this._presences.apply(chat, began);
    this._profiles.apply(chat, began);
    return chat;
  }

  /** Store a chat from an answer of the server. @param {Chat} chat */
  take(chat) {
    this._chats.set(chat.id, this._newer(chat, ++this._clock));
    this._changed();
  }

  /**
   * Create a chat with people and agents given by name.
   * @param {string} title
   * @param {string[]} users
   * @param {string[]} agents
   * @returns {Promise<Chat>}
   */
  async create(title, users, agents) {
    const chat = await this._api.post("/chats", { title, users, agents });
    this.take(chat);
    return chat;
  }

  /**
   * Create a chat that begins with the history up to a message; the same key returns the same chat.
   * @param {string} id of the chat
   * @param {string} messageId
   * @param {string} title
   * @param {string} key
   * @returns {Promise<Chat>}
   */
  async fork(id, messageId, title, key) {
    const body = { message_id: messageId, title };
    const chat = await this._api.post(`/chats/${encodeURIComponent(id)}/forks`, body, {
      "Idempotency-Key": key,
    });
    this.take(chat);
    return chat;
  }

  /** The session of a chat. @param {Chat} chat */
  session({ id, epoch, last_seq: lastSeq }) {
    // Start a little in the past: only the beginning of a running answer names its agent.
    return this._client.open(id, { epoch, after: Math.max(0, lastSeq - OVERLAP) });
  }

  /** Return the name of a chat: its title, else the names of the others. @param {Chat} chat */
  nameOf(chat) {
    return chat.title || namesOf(this.others(chat));
  }

  /**
   * Return the untitled chat between the user and one other member.
   * @param {string} name
   * @param {Participant["kind"]} [kind]
   * @returns {Chat|undefined}
   */
  directWith(name, kind = "user") {
    return this.list.find((chat) => {
      const others = this.others(chat);
      return (
        !chat.title && others.length === 1 && others[0].kind === kind && others[0].name === name
      );
    });
  }

  /**
   * Return the chat with one other member, creating it if needed.
   * @param {string} name
   * @param {Participant["kind"]} [kind]
   * @returns {Promise<Chat>}
   */
  async message(name, kind = "user") {
    return (
      this.directWith(name, kind) ??
      (await this.create("", kind === "user" ? [name] : [], kind === "agent" ? [name] : []))
    );
  }

  /** @param {Participant} participant */
  _isMe(participant) {
    return participant.kind === "user" && String(participant.id) === this._me.id;
  }

  /** @param {Chat} chat @returns {Participant[]} all members except the user */
  others(chat) {
    return chat.participants.filter((participant) => !this._isMe(participant));
  }

  /**
   * @param {{chat_id: string, kind: string, at_seq: number, message?: any, message_id?: string,
   *   thread?: string, replies?: number}} activity
   */
  _activity({ chat_id: id, kind, at_seq: seq, message, message_id: messageId, thread, replies }) {
    this._liveAt.set(id, ++this._clock);
    if (kind === "message.read")
      this._read(id, { type: kind, user_id: this._me.id, message_id: messageId, thread, replies });
    else if (kind === "message.created" && this._chats.has(id)) this._message(id, message, seq);
    else this._readLater(id);
  }

  /** @param {{subject: string, chat_id?: string}} change */
  _person({ subject, chat_id: id }) {
    if (!id) return;
    if (subject === "chat_removed") this._remove(id);
    else this._readLater(id);
  }

  /** @param {string} id of a chat that the user is no longer in */
  _remove(id) {
    this._removedAt.set(id, ++this._clock);
    if (!this._chats.delete(id)) return;
    this.dispatchEvent(new CustomEvent("removed", { detail: id }));
    this._changed();
  }

  /** @param {string} id @param {any} message @param {number} seq its place in the log */
  _message(id, message, seq) {
    const chat = this._chats.get(id);
    if (!chat || seq <= chat.last_seq) return;
    chat.last_seq = seq;
    chat.latest_at = new Date(message.created_at).toISOString();
    chat.archived = false;
    const isOwn = message.sender_kind === "user" && String(message.sender_id) === this._me.id;
    if (message.thread && !message.also_in_chat) {
      this._reply(chat, message, isOwn);
      this._changed();
      return;
    }
    chat.preview = { name: message.name, content: message.content };
    if (!isOwn) {
      // Only the server knows whether the version it replaces was read.
      if (message.version_of) this._readLater(id);
      else chat.unread += 1;
      if (!message.version_of && message.mentions?.includes(this._me.id))
        chat.unread_mentions = (chat.unread_mentions || 0) + 1;
      this.dispatchEvent(new CustomEvent("arrived", { detail: { chat, message } }));
    }
    this._changed();
  }

  /** @param {Chat} chat @param {any} message that only its thread shows @param {boolean} isOwn */
  _reply(chat, message, isOwn) {
    const { isNew, isUnclear } = replied(chat, message, isOwn);
    if (isUnclear) this._readLater(chat.id);
    if (isNew) this.dispatchEvent(new CustomEvent("arrived", { detail: { chat, message } }));
  }

  /** Refetch a chat, once for several changes in a row. @param {string} id */
  _readLater(id) {
    if (this._waiting.has(id)) return;
    this._waiting.add(id);
    setTimeout(async () => {
      this._waiting.delete(id);
      try {
        await this.reload(id);
      } catch (error) {
        if (!isApiError(error)) throw error;
        // The user is no longer in the chat. After any other error, the list is read with the next
        // connection.
        if (error.status === 404) this._remove(id);
      }
    }, TOGETHER_MS);
  }

  /** @param {string} id @param {import("../uamp/types.js").Frame} event */
  _read(id, { user_id: userId, message_id: messageId, thread, replies }) {
    const chat = this._chats.get(id);
    if (!chat || String(userId) !== this._me.id || !messageId) return;
    this._liveAt.set(id, ++this._clock);
    if (thread) {
      if (!readReplies(chat, replies)) this._readLater(id);
      this._changed();
      return;
    }
    chat.unread = 0;
    chat.unread_mentions = 0;
    this._changed();
  }

  /** @param {import("../uamp/types.js").Frame} event */
  _presence({ type, user_id: userId, kind = "user" }) {
    const online = type === "presence.online";
    this._presences.take(this._chats.values(), {
      kind,
      id: String(userId),
      online,
      at: ++this._clock,
    });
    this._changed();
  }

  /** @param {import("./person/looks.js").Profile & {username: string}} event */
  _profile({ username, ...profile }) {
    this._profiles.take(this._chats.values(), { username, profile, at: ++this._clock });
    this._changed();
  }

  _changed() {
    this.dispatchEvent(new Event("change"));
  }
}
