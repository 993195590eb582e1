/** Keyboard navigation between messages, and the keys for the actions on the focused one. */

import { actionsFor } from "./actions.js";

/**
 * @typedef {HTMLElement & {shown: import("../store/entry.js").Entry, openMenu: () => void}}
 *   MessageRow the element of a message
 */

/**
 * Whether the end of a message in the direction of the arrow is in view: before that, the arrow
 * scrolls in the message.
 * @param {Element} row
 * @param {Element} log
 * @param {boolean} isDown
 */
const isSeen = (row, log, isDown) => {
  const [place, view] = [row.getBoundingClientRect(), log.getBoundingClientRect()];
  return isDown ? place.bottom <= view.bottom + 1 : place.top >= view.top - 1;
};

/** @param {KeyboardEvent} event in the log of messages */
export function rowKey(event) {
  const { key } = event;
  const target = /** @type {Element} */ (event.target);
  const log = /** @type {HTMLElement} */ (event.currentTarget);
  const row = target.matches("chat-message") ? /** @type {MessageRow} */ (target) : null;
  if (
    (!row && target !== log) ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.defaultPrevented
  )
    return;
  const rows = /** @type {MessageRow[]} */ (Array.from(log.querySelectorAll("chat-message")));
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step && (!row || isSeen(row, log, step > 0))) {
    const next = row
      ? rows[rows.indexOf(row) + step]
      : rows.findLast((one) => isSeen(one, log, true) && isSeen(one, log, false));
    if (!next) return;
    event.preventDefault();
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  } else if (row && (key === "m" || key === "ContextMenu" || (key === "F10" && event.shiftKey))) {
    event.preventDefault();
    row.openMenu();
  } else if (row) {
    const action = actionsFor(row.shown).find((one) => one.key === key);
    if (!action) return;
    event.preventDefault();
    action.run(row.shown, row);
  }
}
