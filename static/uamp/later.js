/** Schedules retries of events that the server refused for now (`retry_after`). */

const MAX_SECONDS = 30;

/**
 * One retry at a time; consecutive ones wait twice as long each time, so that retries do not use up
 * the user's rate limit.
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
