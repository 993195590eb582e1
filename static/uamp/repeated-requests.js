/** The requests that the server repeats after a reconnect. */

/** How long the server may take to repeat them. */
const REPEATS_MS = 3_000;

export class RepeatedRequests {
  /** @param {(keys: Set<string>) => void} over called with the requests that were not repeated */
  constructor(over) {
    this._over = over;
    /** @type {Set<string>} */
    this._awaited = new Set();
    this._timer = /** @type {any} */ (0);
  }

  /** The connection is back: these requests are over unless repeated. @param {string[]} keys */
  expect(keys) {
    this.stop();
    const awaited = new Set(keys);
    this._awaited = awaited;
    if (awaited.size) this._timer = setTimeout(() => this._over(awaited), REPEATS_MS);
  }

  /** The server sent a request. @param {string} key */
  repeated(key) {
    this._awaited.delete(key);
  }

  /** The connection is lost: the server repeats the requests on the next one. */
  stop() {
    clearTimeout(this._timer);
  }
}
