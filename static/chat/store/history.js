/** Loads the history of the open chat and the events of its session into the state. */

import { worksOf } from "./agent-work.js";
import { entryOf } from "./entry.js";

const PAGE = 50;
/** The server searches events by type only within this distance in the log. */
const FACTS_SPAN = 5_000;
const FACTS_OF_THREADS = [
  "agent.stopped",
  "response.created",
  "response.cancelled",
  "response.error",
];
const FACTS = [
  "agent.stopped",
  "call.ended",
  "chat.forked",
  "link.created",
  "link.revoked",
  "participant.joined",
  "participant.left",
  "participant.updated",
  "response.created",
  "response.cancelled",
  "response.error",
];

/**
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 * @typedef {import("./store.js").Store<OpenChat>} PageStore
 * @typedef {import("../../uamp/chat-session.js").ChatSession} ChatSession
 * @typedef {{entries: import("./entry.js").Entry[], hasMore: boolean}} Loaded
 */

export class History {
  /**
   * @param {PageStore} store
   * @param {{get: (path: string) => Promise<any>}} api
   * @param {Pick<import("../offline/offline-chats.js").OfflineChats, "chat">} [kept] shown when
   *   the server cannot be reached
   */
  constructor(store, api, kept = { chat: async () => undefined }) {
    this._store = store;
    this._api = api;
    this._kept = kept;
    /** Whether the newest page is this device's copy. */
    this.isKept = false;
    /** Counts changes of place, so that answers to earlier requests are ignored. */
    this._place = 0;
    /** @type {Map<string, Promise<void>>} messages being refetched, by id */
    this._refreshing = new Map();
  }

  /**
   * Load the newest page of the open chat.
   * @param {Map<string, string>} failures why answers failed, by response id
   */
  async load(failures) {
    const place = (this._place += 1);
    const { chatId } = this._store.state;
    const { entries, hasMore, isKept = false } = await this._newest(chatId);
    if (!this._isAt(chatId, place)) return;
    this.isKept = isKept;
    const after = hasMore ? (entries[0]?.seq ?? 0) - 1 : 0;
    // Show the newest messages at once, and the lines between them a little later.
    this._store.dispatch({ type: "page", entries, hasOlder: hasMore, hasNewer: false, failures });
    this._showFacts(chatId, place, await this._facts(after, lastSeq(entries) + PAGE));
  }

  /** @param {string} chatId @returns {Promise<Loaded & {isKept?: boolean}>} */
  async _newest(chatId) {
    try {
      return await this._page("order=desc");
    } catch (error) {
      const kept =
        isApiError(error) && /** @type {import("../api.js").ApiError} */ (error).status === 0
          ? await this._kept.chat(chatId)
          : undefined;
      if (!kept) throw error;
      return { entries: kept.entries, hasMore: kept.hasOlder, isKept: true };
    }
  }

  /** Show the end of the chat, if the page shows another place. */
  async loadNewest() {
    if (this._store.state.hasNewer)
      await this._show("order=desc", ({ hasMore }) => ({ hasOlder: hasMore, hasNewer: false }));
  }

  /**
   * Show the messages around a place; rejects with an ApiError if it does not exist.
   * @param {string|number} around a message's id, or a place in the log
   */
  async loadAround(around) {
    await this._show(`order=desc&around=${encodeURIComponent(around)}`, ({ entries, hasMore }) => {
      const middle =
        typeof around === "number" ? around : (entries.find(({ id }) => id === around)?.seq ?? 0);
      const newer = entries.filter(({ seq }) => seq > middle);
      // The server fills both halves; an incomplete one ends where the chat does.
      return { hasOlder: hasMore, hasNewer: newer.length >= Math.floor(PAGE / 2) };
    });
  }

  /** Load the page before the oldest loaded message. */
  async loadOlder() {
    const [first] = this._store.state.entries;
    await this._grow("older", `order=desc&before=${first.seq}`, ({ entries, hasMore }) =>
      this._facts(hasMore ? entries[0].seq - 1 : 0, first.seq),
    );
  }

  /** Load the page after the newest loaded message. */
  async loadNewer() {
    const last = lastSeq(this._store.state.entries);
    await this._grow("newer", `order=asc&after=${last}`, ({ entries, hasMore }) =>
      this._facts(last, lastSeq(entries) + (hasMore ? 1 : PAGE)),
    );
  }

  /** Refetch a message. @param {string} id */
  refresh(id) {
    const known =
      this._refreshing.get(id) || this._refresh(id).finally(() => this._refreshing.delete(id));
    this._refreshing.set(id, known);
    return known;
  }

  /** Load the pinned messages. */
  async loadPins() {
    const { chatId } = this._store.state;
    const { data } = await this._api.get(`/chats/${encodeURIComponent(chatId)}/pins?limit=100`);
    if (this._store.state.chatId === chatId)
      this._store.dispatch({
        type: "pins",
        entries: data.map((/** @type {any} */ one) => entryOf(one)),
      });
  }

  /**
   * Add the quote to an arrived message: the beginning of the message it answers.
   * @param {import("./entry.js").Entry} entry
   */
  async withQuote(entry) {
    const quote = entry.reply_to;
    if (!quote || quote.content !== undefined) return entry;
    const there = this._store.state.entries.find(({ id }) => id === quote.id);
    if (there)
      return { ...entry, reply_to: { id: there.id, name: there.name, content: there.content } };
    try {
      const { id, name, content } = await this._api.get(
        `/messages/${encodeURIComponent(quote.id)}`,
      );
      return { ...entry, reply_to: { id, name, content } };
    } catch (error) {
      if (!isApiError(error)) throw error;
      return entry;
    }
  }

  /** @param {string} id */
  async _refresh(id) {
    const { chatId } = this._store.state;
    const message = await this._api.get(`/messages/${encodeURIComponent(id)}?expand=signature`);
    if (this._store.state.chatId === chatId)
      this._store.dispatch({ type: "refreshed", entry: entryOf(message) });
  }

  /** @param {string} chatId @param {number} place */
  _isAt(chatId, place) {
    return this._store.state.chatId === chatId && this._place === place;
  }

  /**
   * Load a page of messages, oldest first, and whether there are more in the requested direction.
   * @param {string} query
   * @returns {Promise<Loaded>}
   */
  async _page(query) {
    const { chatId, thread } = this._store.state;
    const page = await this._api.get(
      `/chats/${encodeURIComponent(
        chatId,
      )}/messages?limit=${PAGE}&expand=signature&thread=${thread || "none"}&${query}`,
    );
    const messages = page.data.map((/** @type {any} */ message) => entryOf(message));
    const isFalling = query.startsWith("order=desc");
    const entries = isFalling ? messages.reverse() : messages;
    // A thread begins with the message that its replies belong to.
    if (thread && isFalling && !page.has_more)
      entries.unshift(
        entryOf(await this._api.get(`/messages/${encodeURIComponent(thread)}?expand=signature`)),
      );
    return { entries, hasMore: page.has_more };
  }

  /**
   * Show another place of the chat.
   * @param {string} query @param {(loaded: Loaded) => {hasOlder: boolean, hasNewer: boolean}} ends
   */
  async _show(query, ends) {
    const place = (this._place += 1);
    const { chatId } = this._store.state;
    const loaded = await this._page(query);
    const { entries } = loaded;
    const { hasOlder, hasNewer } = ends(loaded);
    const facts = await this._facts(
      hasOlder ? (entries[0]?.seq ?? 1) - 1 : 0,
      lastSeq(entries) + (hasNewer ? 1 : PAGE),
    );
    if (!this._isAt(chatId, place)) return;
    this._store.dispatch({ type: "place", entries, hasOlder, hasNewer });
    this._showFacts(chatId, place, facts);
  }

  /**
   * Load a page at one end of the loaded part, together with the lines between its messages, so
   * that nothing moves afterwards.
   * @param {"older"|"newer"} end
   * @param {string} query
   * @param {(loaded: Loaded) => Promise<any[]>} factsOf
   */
  async _grow(end, query, factsOf) {
    const { chatId } = this._store.state;
    const place = this._place;
    this._store.dispatch({ type: "loading", end });
    try {
      const loaded = await this._page(query);
      const facts = loaded.entries.length ? await factsOf(loaded) : [];
      if (!this._isAt(chatId, place)) return;
      const more = end === "older" ? { hasOlder: loaded.hasMore } : { hasNewer: loaded.hasMore };
      this._store.dispatch({ type: "page", entries: loaded.entries, ...more });
      this._showFacts(chatId, place, facts);
    } catch (error) {
      if (!isApiError(error)) throw error;
      if (this._isAt(chatId, place)) this._store.dispatch({ type: "load-failed", end });
    }
  }

  /** @param {string} chatId @param {number} place @param {any[]} events */
  _showFacts(chatId, place, events) {
    if (this._isAt(chatId, place)) this._store.dispatch({ type: "facts", events });
  }

  /**
   * Load the log's other events between two places. Without them the messages are still readable.
   * @param {number} after @param {number} before
   */
  async _facts(after, before) {
    const from = Math.max(0, after, before - FACTS_SPAN);
    const { chatId, thread } = this._store.state;
    try {
      const path = `/chats/${encodeURIComponent(chatId)}/events?types=${(
        thread ? FACTS_OF_THREADS : FACTS
      ).join(",")}&after=${from}&before=${before}&order=desc&limit=200`;
      const answer = await this._api.get(path);
      return answer.data.map((/** @type {any} */ { seq, type, payload }) => ({
        ...payload,
        seq,
        type,
      }));
    } catch (error) {
      if (!isApiError(error)) throw error;
      return [];
    }
  }
}

/** @param {unknown} error */
const isApiError = (error) => error instanceof Error && error.name === "ApiError";

/** @param {import("./entry.js").Entry[]} entries */
const lastSeq = (entries) => entries.at(-1)?.seq ?? 0;

/**
 * The approvals of a session, each with its thread.
 * @param {ChatSession} session
 */
const approvalsOf = ({ approvals, responses }) =>
  approvals.list.map((one) => ({ ...one, thread: responses.get(one.responseId)?.thread || "" }));

/**
 * Keep the state in sync with a session, except for messages: the page may have to prepare them
 * first.
 * @param {PageStore} store
 * @param {ChatSession} session
 * @param {AbortSignal} signal aborted when the chat is left
 */
export function followSession(store, session, signal) {
  const showOwn = () =>
    store.dispatch({ type: "own", ids: session.ownResponses.map(({ id }) => id) });
  const showWorks = () => store.dispatch({ type: "works", list: worksOf(session) });
  /** @type {Record<string, (detail: any) => void>} */
  const listeners = {
    response: (response) => {
      store.dispatch({ type: "response", response });
      showOwn();
      showWorks();
    },
    "response-end": (response) => {
      store.dispatch({ type: "response-end", response, failures: session.failures });
      showOwn();
      showWorks();
    },
    approvals: () => {
      store.dispatch({ type: "approvals", list: approvalsOf(session) });
      showWorks();
    },
    payments: showWorks,
    act: (event) => store.dispatch({ type: "act", event }),
    fact: (event) => store.dispatch({ type: "facts", events: [event] }),
    participants: (event) => store.dispatch({ type: "facts", events: [event] }),
    turns: () => store.dispatch({ type: "turns", list: session.turns }),
    queue: (list) => store.dispatch({ type: "queue", list }),
    read: (event) => store.dispatch({ type: "thread-read", event }),
    state: ({ value, by }) => store.dispatch({ type: "shared", shared: { value, by } }),
  };
  for (const [type, listener] of Object.entries(listeners)) {
    session.addEventListener(type, (event) => listener(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
  }
}

/**
 * Apply the events that the session received before the history was loaded.
 * @param {PageStore} store
 * @param {ChatSession} session
 */
export function catchUp(store, session) {
  session.noteOwn(store.state.entries);
  for (const response of session.responses.values()) store.dispatch({ type: "response", response });
  for (const response of session.broken.values()) {
    store.dispatch({ type: "response-end", response, failures: session.failures });
  }
  store.dispatch({ type: "own", ids: session.ownResponses.map(({ id }) => id) });
  store.dispatch({ type: "approvals", list: approvalsOf(session) });
  store.dispatch({ type: "works", list: worksOf(session) });
  store.dispatch({ type: "turns", list: session.turns });
  store.dispatch({ type: "queue", list: session.queue });
  store.dispatch({ type: "shared", shared: { value: session.state.value, by: session.state.by } });
}
