/** The keys that verify answers and receipts, as published by the server; cached for a while. */

const FRESH_MS = 300_000;
/** The server's maximum number of ids per request. */
const MAX_KIDS = 50;
/** The owners of the keys that sign the heads of logs, and the checkpoints of their tree. */
const LOGS = "log";
const TREE = "tree";

/** @typedef {import("../uamp/types.js").PublishedKey} PublishedKey */

export class SignatureKeys {
  /** @param {(path: string, options?: RequestInit) => Promise<any>} get */
  constructor(get) {
    this._get = get;
    /** @type {Map<string, {keys: Promise<PublishedKey[]>, until: number}>} */
    this._known = new Map();
    /** Ids to request together, when the current task ends. @type {Set<string>} */
    this._wanted = new Set();
    /** @type {Promise<PublishedKey[]>|null} */
    this._asked = null;
  }

  /**
   * Return the key with an id, or none if it is not published.
   * @param {string} kid
   * @returns {Promise<PublishedKey[]>}
   */
  async of(kid) {
    const known = this._known.get(kid);
    if (known && known.until > Date.now()) return known.keys;
    this._wanted.add(kid);
    this._asked ??= Promise.resolve().then(() => this._read());
    const keys = this._asked.then((all) => all.filter((key) => key.kid === kid));
    this._known.set(kid, { keys, until: Date.now() + FRESH_MS });
    // Forget a failed request, so that the next one tries again.
    keys.catch(() => this._known.delete(kid));
    return keys;
  }

  /** The published keys that sign the heads of logs. */
  ofLogs() {
    return this._ofOwner(LOGS);
  }

  /** The published keys that sign the checkpoints of the tree of log heads. */
  ofTree() {
    return this._ofOwner(TREE);
  }

  /**
   * The keys of an owner as they are now: a head may be signed with a key that is newer than the
   * browser's cache.
   * @param {string} owner
   * @returns {Promise<PublishedKey[]>}
   */
  async _ofOwner(owner) {
    const { keys } = await this._get("/.well-known/jwks.json", { cache: "no-cache" });
    return keys.filter((/** @type {PublishedKey} */ key) => key.uamp_owner === owner);
  }

  async _read() {
    const kids = [...this._wanted];
    this._wanted.clear();
    this._asked = null;
    /** @type {PublishedKey[]} */
    const keys = [];
    for (let at = 0; at < kids.length; at += MAX_KIDS) {
      const query = kids
        .slice(at, at + MAX_KIDS)
        .map((kid) => `kid=${encodeURIComponent(kid)}`)
        .join("&");
      keys.push(...(await this._get(`/.well-known/jwks.json?${query}`)).keys);
    }
    return keys;
  }
}

/** @param {string} path @param {RequestInit} [options] */
async function read(path, options) {
  const answer = await fetch(path, { ...options, headers: { Accept: "application/json" } });
  if (!answer.ok) throw new TypeError(`${path}: ${answer.status}`);
  return answer.json();
}

/** The keys of this server. */
export const publishedKeys = new SignatureKeys(read);
