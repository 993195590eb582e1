/**
 * This device's copies of the chats that the user has read, which the page shows while the server
 * cannot be reached.
 *
 * Each user has a separate cache. The service worker deletes it when they sign out or another
 * person signs in: a page that is still open writes to a cache that nothing reads any more.
 */

/** As in `static/offline/service-worker.js`. */
const READ = "uamp.read.";
const LIST = "/kept/chats";
const CHATS = 30;
const ENTRIES = 100;
const CHARS = 500_000;
/** Storage keys of the user's unsent texts, the chat that they read and the logs that they checked. */
const WRITTEN = /^uamp\.(?:outbox|drafts|last-chat|checked-logs)\.(\d+)(?:\.|$)/;

/**
 * @typedef {import("../store/chat.js").Chat} Chat
 * @typedef {import("../store/entry.js").Entry} Entry
 * @typedef {{chat: Chat, entries: Entry[], hasOlder: boolean}} KeptChat
 */

/** @param {string} id */
const placeOf = (id) => `${LIST}/${encodeURIComponent(id)}`;

export class OfflineChats {
  /**
   * @param {string} owner whose chats
   * @param {CacheStorage} [caches] missing at insecure addresses
   */
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

  /** Store the list of chats, and drop chats that are not in it. @param {Chat[]} chats */
  keepList(chats) {
    return this._use(async (cache) => {
      const places = new Set([LIST, ...chats.map(({ id }) => placeOf(id))]);
      const gone = (await cache.keys()).filter(({ url }) => !places.has(new URL(url).pathname));
      await Promise.all(gone.map((request) => cache.delete(request)));
      await cache.put(LIST, asJson(JSON.stringify(chats)));
    });
  }

  /** Store the newest messages of a chat. @param {KeptChat} kept */
  keepChat({ chat, entries, hasOlder }) {
    return this._use(async (cache) => {
      let last = entries.slice(-ENTRIES);
      const write = () =>
        JSON.stringify({ chat, entries: last, hasOlder: hasOlder || last.length < entries.length });
      let text = write();
      while (text.length > CHARS && last.length > 1) {
        last = last.slice(Math.ceil(last.length / 2));
        text = write();
      }
      // Replace the copy in one step: a page closed meanwhile must not leave less than before.
      await cache.put(placeOf(chat.id), asJson(text));
      const chats = (await cache.keys()).filter(({ url }) => new URL(url).pathname !== LIST);
      await Promise.all(chats.slice(0, -CHATS).map((request) => cache.delete(request)));
    });
  }

  /** @param {string} id of a chat that the user is no longer in */
  async drop(id) {
    await this._use((cache) => cache.delete(placeOf(id)));
  }

  /** @param {string} place */
  _read(place) {
    return this._use(async (cache) => (await cache.match(place))?.json());
  }

  /**
   * Use the cache, if there is one; the disk may be full, and a sign-out in another tab may delete
   * it at any time.
   * @template T
   * @param {(cache: Cache) => Promise<T>} act
   * @returns {Promise<T|undefined>}
   */
  async _use(act) {
    const cache = await this._cache;
    try {
      return cache && (await act(cache));
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  }
}

/** @param {string} text */
const asJson = (text) => new Response(text, { headers: { "Content-Type": "application/json" } });

/**
 * Delete the data that other people left on this device.
 * @param {string} owner who is signed in
 * @param {{caches?: CacheStorage, storages?: Storage[]}} [places]
 */
export async function forgetOthers(
  owner,
  { caches = globalThis.caches, storages = [localStorage, sessionStorage] } = {},
) {
  for (const storage of storages) {
    const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) || "");
    for (const key of keys)
      if ((WRITTEN.exec(key)?.[1] ?? owner) !== owner) storage.removeItem(key);
  }
  const names = (await caches?.keys()) ?? [];
  await Promise.all(
    names
      .filter((name) => name.startsWith(READ) && name !== READ + owner)
      .map((name) => caches.delete(name)),
  );
}
