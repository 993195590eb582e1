/** Brings the history of the open chat, and what its session says, into the state. */

import { entryOf } from "./entry.js";

const PAGE = 50;

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
    this._take(chatId, page, failures);
  }

  /** Load the page before the oldest message. */
  async loadOlder() {
    const { chatId, entries } = this._store.state;
    this._store.dispatch({ type: "older-asked" });
    try {
      const page = await this._page(chatId, `&before=${entries[0].seq}`);
      this._take(chatId, page);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "ApiError") throw error;
      if (this._store.state.chatId === chatId) this._store.dispatch({ type: "older-failed" });
    }
  }

  /** @param {string} chatId @param {string} query */
  _page(chatId, query) {
    return this._api.get(`/chats/${encodeURIComponent(chatId)}/messages?limit=${PAGE}&order=desc&render=html${query}`);
  }

  /** @param {string} chatId @param {any} page @param {Map<string, string>} [failures] */
  _take(chatId, page, failures) {
    if (this._store.state.chatId !== chatId) return;
    const entries = page.data.map((/** @type {any} */ message) => entryOf(message));
    this._store.dispatch({ type: "page", entries, hasOlder: page.has_more, failures });
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
