/** The keyboard in the messages: from one to the next, and what can be done with the one that has the focus. */

import { actionsFor } from "./actions.js";

/** Where a message is taller than the screen, the arrow scrolls in it first. */
const isSeen = (row, log, isDown) => {
  const [place, view] = [row.getBoundingClientRect(), log.getBoundingClientRect()];
  return isDown ? place.bottom <= view.bottom + 1 : place.top >= view.top - 1;
};

/** @param {KeyboardEvent} event in the log of messages */
export function rowKey(event) {
  const { target, key, currentTarget: log } = event;
  const row = target.matches("chat-message") ? target : null;
  if ((!row && target !== log) || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const rows = Array.from(log.querySelectorAll("chat-message"));
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step && (!row || isSeen(row, log, step > 0))) {
    const next = row ? rows[rows.indexOf(row) + step] : rows.findLast((one) => isSeen(one, log, true) && isSeen(one, log, false));
    if (!next) return;
    event.preventDefault();
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  } else if (row && (key === "m" || key === "ContextMenu" || (key === "F10" && event.shiftKey))) {
    event.preventDefault();
    row.openMenu();
  } else if (row) {
    const action = actionsFor(row.entry).find((one) => one.key === key);
    if (!action) return;
    event.preventDefault();
    action.run(row.entry, row);
  }
}
