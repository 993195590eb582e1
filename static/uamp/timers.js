/** Timers of a session: for retries, and for what the server repeats after a reconnect. */

const MAX_SECONDS = 30;

/** How long the server may take to repeat its requests after a reconnect. */
const REPEATS_MS = 3_000;

/**
 * Retries of events that the server refused for now (`retry_after`), one at a time. Consecutive
 * ones wait twice as long each time, so that retries do not use up the user's rate limit.
 */
export class Later {
  /** @param {() => void} repeat */
  constructor(repeat) {
    this._repeat = repeat;
    this._timer = 0;
    this._inARow = 0;
  }

  /** Whether a retry is planned. */
  get isPlanned() {
    return this._timer !== 0;
  }

  /** @param {number} seconds that the server asked to wait */
  plan(seconds) {
    if (this.isPlanned) return;
    const wait = Math.max(seconds, Math.min(seconds * 2 ** this._inARow, MAX_SECONDS));
    this._inARow += 1;
    this._timer = setTimeout(() => {
      this._timer = 0;
      this._repeat();
    }, 1000 * wait);
  }

  /** The server accepted something, or the connection changed. */
  reset() {
    clearTimeout(this._timer);
    this._timer = 0;
    this._inARow = 0;
  }
}

/** The requests that the server repeats after a reconnect. */
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
