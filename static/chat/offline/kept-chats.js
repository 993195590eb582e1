/**
 * What this device keeps of the chats that a person has read, so that the page shows it while the server cannot be reached.
 *
 * It is in a cache of its own for each person. The service worker deletes it when they sign out and when another person
 * signs in: a page that is still open writes to a cache that nothing reads any more.
 */

/** As in `static/offline/service-worker.js`. */
const READ = "uamp.read.";
const LIST = "/kept/chats";
const CHATS = 30;
const ENTRIES = 100;
const CHARS = 500_000;
/** Where a page keeps what a person wrote and did not send. */
const WRITTEN = /^uamp\.(?:outbox|drafts)\.(\d+)(?:\.|$)/;

/**
 * @typedef {import("../chat-store.js").Chat} Chat
 * @typedef {import("../store/entry.js").Entry} Entry
 * @typedef {{chat: Chat, entries: Entry[], hasOlder: boolean}} KeptChat
 */

/** @param {string} id */
const placeOf = (id) => `${LIST}/${encodeURIComponent(id)}`;

export class KeptChats {
  /** @param {string} owner whose chats @param {CacheStorage} [caches] missing where the address is not secure */
  constructor(owner, caches = globalThis.caches) {
    this._cache = caches?.open(READ + owner).catch(() => undefined);
  }

  /** @returns {Promise<Chat[]|undefined>} */
  list() {
    return this._read(LIST);
  }

  /** @param {string} id @returns {Promise<KeptChat|undefined>} */
  chat(id) {
    return this._read(placeOf(id));
  }

  /** Keep the list of chats, and only chats that are in it. @param {Chat[]} chats */
  async keepList(chats) {
    const cache = await this._cache;
    if (!cache) return;
    await this._write(LIST, JSON.stringify(chats));
    const places = new Set([LIST, ...chats.map(({ id }) => placeOf(id))]);
    const gone = (await cache.keys()).filter(({ url }) => !places.has(new URL(url).pathname));
    await Promise.all(gone.map((request) => cache.delete(request)));
  }

  /** Keep the newest messages of a chat. @param {KeptChat} kept */
  async keepChat({ chat, entries, hasOlder }) {
    const cache = await this._cache;
    if (!cache) return;
    let last = entries.slice(-ENTRIES);
    const write = () => JSON.stringify({ chat, entries: last, hasOlder: hasOlder || last.length < entries.length });
    let text = write();
    while (text.length > CHARS && last.length > 1) {
      last = last.slice(Math.ceil(last.length / 2));
      text = write();
    }
    await this._write(placeOf(chat.id), text);
    const chats = (await cache.keys()).filter(({ url }) => new URL(url).pathname !== LIST);
    await Promise.all(chats.slice(0, -CHATS).map((request) => cache.delete(request)));
  }

  /** @param {string} id of a chat that the person is no longer in */
  async drop(id) {
    await (await this._cache)?.delete(placeOf(id));
  }

  /** @param {string} place */
  async _read(place) {
    const kept = await (await this._cache)?.match(place);
    return kept?.json();
  }

  /** In one step: a page that ends meanwhile must not leave less than there was. @param {string} place @param {string} text */
  async _write(place, text) {
    const cache = await this._cache;
    try {
      await cache?.put(place, new Response(text, { headers: { "Content-Type": "application/json" } }));
    } catch (error) {
      // The disk is full: it is not there without a connection.
      if (!(error instanceof DOMException)) throw error;
    }
  }
}

/**
 * Delete what other people left on this device.
 * @param {string} owner who is signed in
 * @param {{caches?: CacheStorage, storages?: Storage[]}} [places]
 */
export async function forgetOthers(owner, { caches = globalThis.caches, storages = [localStorage, sessionStorage] } = {}) {
  for (const storage of storages) {
    const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) || "");
    for (const key of keys) if ((WRITTEN.exec(key)?.[1] ?? owner) !== owner) storage.removeItem(key);
  }
  const names = (await caches?.keys()) ?? [];
  await Promise.all(names.filter((name) => name.startsWith(READ) && name !== READ + owner).map((name) => caches.delete(name)));
}
