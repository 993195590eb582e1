/** Unsent texts by chat. They survive a reload, and are deleted when the user signs out. */

const KEPT = 40;
const CHARS = 20_000;
const SAVE_AFTER_MS = 400;

export class Drafts {
  /**
   * @param {Storage} storage
   * @param {string} owner another person on this device must not see it
   */
  constructor(storage, owner) {
    this._storage = storage;
    this._key = `uamp.drafts.${owner}`;
    /** Whether the user signed out, in this tab or another one. */
    this._isOver = false;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this._timer = undefined;
    /** @type {Map<string, string>} by chat id, the one that was written last at the end */
    this._texts = new Map(JSON.parse(storage.getItem(this._key) || "[]"));
  }

  /** @param {string} chatId */
  get(chatId) {
    return this._texts.get(chatId) || "";
  }

  /** @param {string} chatId @param {string} text */
  set(chatId, text) {
    this._texts.delete(chatId);
    if (text) this._texts.set(chatId, text);
  }

  /**
   * Set a text that is being written, and save it at the next pause.
   * @param {string} chatId @param {string} text
   */
  write(chatId, text) {
    this.set(chatId, text);
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  /** Save the texts; not with each keystroke, since that costs other tabs and the disk. */
  save() {
    if (this._isOver) return;
    const newest = Array.from(this._texts)
      .filter(([, text]) => text.length <= CHARS)
      .slice(-KEPT);
    try {
      if (newest.length) this._storage.setItem(this._key, JSON.stringify(newest));
      else this._storage.removeItem(this._key);
    } catch (error) {
      // The storage is full: the texts last only as long as the page.
      if (!(error instanceof DOMException)) throw error;
    }
  }

  /** The user signs out. */
  forget() {
    this._isOver = true;
    this._texts.clear();
    this._storage.removeItem(this._key);
  }
}
