/** When to send again what the server refused for now (`retry_after`). */

const MAX_SECONDS = 30;

/**
 * One repeat at a time; each in a row waits twice as long, so that repeats do not use up what a
 * person may send.
 */
export class Later {
  /** @param {() => void} repeat */
  constructor(repeat) {
    this._repeat = repeat;
    this._timer = 0;
    this._inARow = 0;
  }

  /** Whether a repeat is planned. */
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

  /** The server took something, or the connection is another one. */
  reset() {
    clearTimeout(this._timer);
    this._timer = 0;
    this._inARow = 0;
  }
}
