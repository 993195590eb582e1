/**
 * What the checks of chats on this device have seen: the end of each chat's log and the newest
 * checkpoint of the server's tree, so that the next check notices a history that was rewritten in
 * between. They are kept per server, as all storage of a browser is, and are deleted when the user
 * signs out.
 */

/**
 * @typedef {import("../../uamp/logs/chat-check.js").ChatResult} ChatResult
 * @typedef {import("../../uamp/logs/chat-check.js").Known} Known
 * @typedef {{tree: Known["tree"], ends: [string, NonNullable<Known["end"]>][]}} Stored the ends by
 *   chat, the one that was checked last at the end
 */

const CHATS = 500;

export class CheckedLogs {
  /** @param {Storage} storage @param {string} owner another person on this device begins anew */
  constructor(storage, owner) {
    this._storage = storage;
    this._key = `uamp.checked-logs.${owner}`;
    /** Whether the user signed out. */
    this._isOver = false;
  }

  /** What the next check of a chat has to find. @param {string} chatId @returns {Known} */
  of(chatId) {
    const { tree, ends } = this._read();
    return { tree, end: ends.find(([id]) => id === chatId)?.[1] ?? null };
  }

  /**
   * Store what a check found, unless another tab has seen more.
   * @param {string} chatId @param {ChatResult} result
   */
  keep(chatId, { end, tree }, now = Date.now()) {
    if (this._isOver) return;
    const stored = this._read();
    const before = stored.ends.find(([id]) => id === chatId)?.[1];
    if (end && end.seq >= (before?.seq ?? 0)) {
      const others = stored.ends.filter(([id]) => id !== chatId);
      stored.ends = [...others, [chatId, { ...end, at: now }]];
    }
    const newest = tree?.newest;
    if (newest && newest.size >= (stored.tree?.size ?? 0)) stored.tree = { ...newest, at: now };
    this._write({ ...stored, ends: stored.ends.slice(-CHATS) });
  }

  /** The user signs out. */
  forget() {
    this._isOver = true;
    this._storage.removeItem(this._key);
  }

  /** @returns {Stored} */
  _read() {
    return JSON.parse(this._storage.getItem(this._key) || '{"tree":null,"ends":[]}');
  }

  /** @param {Stored} stored */
  _write(stored) {
    try {
      this._storage.setItem(this._key, JSON.stringify(stored));
    } catch (error) {
      // The storage is full.
      if (!(error instanceof DOMException)) throw error;
    }
  }
}
