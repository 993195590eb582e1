/**
 * Keeps the reading position while the content around it changes, and finds distant messages to
 * cut.
 */

/** Messages this close to the visible part stay on the page. */
const FAR_PX = 1_000;
/** The maximum number of messages kept on the page, and of elements in them. */
const MAX_ROWS = 70;
const MAX_ELEMENTS = 1_600;

/** @param {Node|null} node */
const isElement = (node) => node?.nodeType === Node.ELEMENT_NODE;

export class ScrollPlace {
  /** @param {HTMLElement} log the scrolling element @param {HTMLElement} rows its messages */
  constructor(log, rows) {
    this._log = log;
    this._rows = rows;
    /**
     * @type {{row: Element, top: number}|null} the first visible row, and where it is on the
     *   screen
     */
    this._anchor = null;
  }

  /** Remember the first visible row. */
  remember() {
    const top = this._log.getBoundingClientRect().top;
    const row = Array.from(this._rows.children).find(
      (one) => one.matches("chat-message") && one.getBoundingClientRect().bottom > top,
    );
    this._anchor = row ? { row, top: row.getBoundingClientRect().top } : null;
  }

  /** Scroll that row back to where it was. */
  restore() {
    if (!this._anchor?.row.isConnected) return;
    const moved = this._anchor.row.getBoundingClientRect().top - this._anchor.top;
    if (Math.abs(moved) >= 1) this._log.scrollTop += moved;
  }

  /** Drop the empty comment that Lit 3.3 leaves for each row removed by `repeat`. */
  sweep() {
    for (const node of Array.from(this._rows.childNodes)) {
      const isMark = node instanceof Comment && node.data === "";
      if (isMark && !isElement(node.previousSibling) && !isElement(node.nextSibling)) node.remove();
    }
  }

  /**
   * The messages that may stay, from the first to the last; null where all may.
   * @returns {{first: number, last: number}|null}
   */
  cut() {
    const rows = /** @type {(HTMLElement & {entry: import("../store/entry.js").Entry})[]} */ (
      Array.from(this._rows.querySelectorAll(":scope > chat-message"))
    );
    const sizes = rows.map((row) => row.getElementsByTagName("*").length);
    let elements = sizes.reduce((sum, size) => sum + size, 0);
    const view = this._log.getBoundingClientRect();
    let [from, to] = [0, rows.length - 1];
    while (to - from >= MAX_ROWS || elements > MAX_ELEMENTS) {
      const above = view.top - rows[from].getBoundingClientRect().bottom;
      const below = rows[to].getBoundingClientRect().top - view.bottom;
      if (Math.max(above, below) < FAR_PX) break;
      elements -= above > below ? sizes[from++] : sizes[to--];
    }
    if (from === 0 && to === rows.length - 1) return null;
    return { first: rows[from].entry.seq, last: rows[to].entry.seq };
  }
}
