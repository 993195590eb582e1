/** Places an open popover beside the element that opened it, inside the window. */

const GAP_PX = 4;

/** @param {HTMLElement} box @param {HTMLElement} origin */
export function placeBeside(box, origin) {
  const place = origin.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const below = place.bottom + GAP_PX + height <= innerHeight;
  const top = below ? place.bottom + GAP_PX : place.top - GAP_PX - height;
  const isAtStart = getComputedStyle(origin).direction === "rtl";
  const left = isAtStart ? place.left : place.right - width;
  box.style.left = `${Math.max(GAP_PX, Math.min(left, innerWidth - width - GAP_PX))}px`;
  box.style.top = `${Math.max(GAP_PX, Math.min(top, innerHeight - height - GAP_PX))}px`;
}

/**
 * Place an open popover where it covers nothing of a message: below its button, above the message
 * or beside its text, within the column of the log. If it fits nowhere, above its button.
 * @param {HTMLElement} box
 * @param {HTMLElement} origin
 */
export function placeClear(box, origin) {
  const button = origin.getBoundingClientRect();
  const column = (
    origin.closest("thread-panel, chat-view") ?? document.body
  ).getBoundingClientRect();
  const message = (origin.closest("chat-message") ?? origin).getBoundingClientRect();
  const text = (
    origin.closest("chat-message")?.querySelector(".bubble") ?? origin
  ).getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const lowest = innerHeight - height - GAP_PX;
  const left = column.left + GAP_PX;
  const right = column.right - width - GAP_PX;
  const isAtStart = getComputedStyle(origin).direction === "rtl";
  const aligned = isAtStart ? button.right - width : button.left;
  const level = Math.max(GAP_PX, Math.min(button.bottom - height, lowest));
  const places = [
    { x: aligned, y: button.bottom + GAP_PX },
    { x: aligned, y: message.top - GAP_PX - height },
    { x: text.right + GAP_PX, y: level, isBeside: true },
    { x: text.left - GAP_PX - width, y: level, isBeside: true },
  ];
  const fits = places.find(
    ({ x, y, isBeside }) => y >= GAP_PX && y <= lowest && (!isBeside || (x >= left && x <= right)),
  );
  const { x, y } = fits ?? { x: aligned, y: button.top - GAP_PX - height };
  box.style.left = `${Math.max(left, Math.min(x, right))}px`;
  box.style.top = `${Math.max(GAP_PX, Math.min(y, lowest))}px`;
}
