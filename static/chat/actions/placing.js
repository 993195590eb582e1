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
