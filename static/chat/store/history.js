/** Brings the history of the open chat, and what its session says, into the state. */

import { entryOf } from "./entry.js";

const PAGE = 50;
/** The server looks for events of some types between two places that are not farther apart. */
const FACTS_SPAN = 5_000;
const FACTS = ["participant.joined", "participant.left", "response.error"];

/**
 * @typedef {import("./open-chat.js").OpenChat} OpenChat
 * @typedef {import("./store.js").Store<OpenChat>} PageStore
 * @typedef {import("../../uamp/chat-session.js").ChatSession} ChatSession
 */

export class History {
  /** @param {PageStore} store @param {{get: (path: string) => Promise<any>}} api */
  constructor(store, api) {
    this._store = store;
    this._api = api;
  }

  /**
   * Load the newest page of the open chat.
   * @param {Map<string, string>} failures why answers failed, by response id
   */
  async load(failures) {
    const { chatId } = this._store.state;
    const page = await this._page(chatId, "");
    if (this._store.state.chatId === chatId) await this._take(chatId, page, failures);
  }

  /** Load the page before the oldest message. */
  async loadOlder() {
    const { chatId, entries } = this._store.state;
    this._store.dispatch({ type: "older-asked" });
    try {
      const page = await this._page(chatId, `&before=${entries[0].seq}`);
      await this._take(chatId, page);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "ApiError") throw error;
      if (this._store.state.chatId === chatId) this._store.dispatch({ type: "older-failed" });
    }
  }

  /** @param {string} chatId @param {string} query */
  _page(chatId, query) {
    return this._api.get(`/chats/${encodeURIComponent(chatId)}/messages?limit=${PAGE}&order=desc${query}`);
  }

  /** @param {string} chatId @param {any} page @param {Map<string, string>} [failures] */
  async _take(chatId, page, failures) {
    const entries = page.data.map((/** @type {any} */ message) => entryOf(message));
    const facts = this._facts(chatId, entries, page.has_more);
    // Older messages come with all that stands between them, so that nothing moves afterwards; the newest come at once.
    if (!failures) await facts;
    if (this._store.state.chatId !== chatId) return;
    this._store.dispatch({ type: "page", entries, hasOlder: page.has_more, failures });
    const events = await facts;
    if (this._store.state.chatId === chatId) this._store.dispatch({ type: "facts", events });
  }

  /**
   * What the log says around some messages, which come newest first. Without it they are still readable.
   * @param {string} chatId @param {import("./entry.js").Entry[]} entries @param {boolean} hasOlder
   */
  async _facts(chatId, entries, hasOlder) {
    const isNewest = this._store.state.entries.length === 0;
    const oldest = hasOlder ? entries.at(-1)?.seq ?? 0 : 0;
    const before = isNewest ? (entries[0]?.seq ?? 0) + PAGE : this._store.state.entries[0].seq;
    const after = Math.max(0, oldest - 1, before - FACTS_SPAN);
    try {
      const path = `/chats/${encodeURIComponent(chatId)}/events?types=${FACTS.join(",")}&after=${after}&before=${before}&order=desc&limit=200`;
      const answer = await this._api.get(path);
      return answer.data.map((/** @type {any} */ { seq, type, payload }) => ({ ...payload, seq, type }));
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "ApiError") throw error;
      return [];
    }
  }
}

/**
 * Keep the state up to date with a session, except for its messages: the page may have to make them ready first.
 * @param {PageStore} store
 * @param {ChatSession} session
 * @param {AbortSignal} signal that the chat is left
 */
export function followSession(store, session, signal) {
  const showOwn = () => store.dispatch({ type: "own", ids: session.ownResponses.map(({ id }) => id) });
  /** @type {Record<string, (detail: any) => void>} */
  const listeners = {
    response: (response) => {
      store.dispatch({ type: "response", response });
      showOwn();
    },
    "response-end": (response) => {
      store.dispatch({ type: "response-end", response, failures: session.failures });
      showOwn();
    },
    approvals: () => store.dispatch({ type: "approvals", list: session.approvals.list }),
    participants: (event) => store.dispatch({ type: "facts", events: [event] }),
    turns: () => store.dispatch({ type: "turns", list: session.turns }),
  };
  for (const [type, listener] of Object.entries(listeners)) {
    session.addEventListener(type, (event) => listener(/** @type {CustomEvent} */ (event).detail), { signal });
  }
}

/**
 * Take over what the session received before the history was here.
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
  store.dispatch({ type: "approvals", list: session.approvals.list });
  store.dispatch({ type: "turns", list: session.turns });
}
