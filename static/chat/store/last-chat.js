/** The chat that the user last opened on this device: the start page opens it again. */

export class LastChat {
  /** @param {Storage} storage @param {string} owner another person on this device begins anew */
  constructor(storage, owner) {
    this._storage = storage;
    this._key = `uamp.last-chat.${owner}`;
    /** Whether the user signed out. */
    this._isOver = false;
  }

  /** "" for none */
  get id() {
    return this._storage.getItem(this._key) ?? "";
  }

  /** @param {string} chatId */
  keep(chatId) {
    if (this._isOver) return;
    try {
      this._storage.setItem(this._key, chatId);
    } catch (error) {
      // The storage is full.
      if (!(error instanceof DOMException)) throw error;
    }
  }

  /** The user signs out. */
  forget() {
    this._isOver = true;
    this._storage.removeItem(this._key);
  }
}
