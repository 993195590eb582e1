/** A long press on an element opens its menu, like a right click. */

const PRESS_MS = 450;
const MOVED_PX = 10;

/** @param {HTMLElement} element @param {() => void} does */
export function onLongPress(element, does) {
  let timer = 0;
  let from = { x: 0, y: 0 };
  const end = () => clearTimeout(timer);
  element.addEventListener("pointerdown", (event) => {
    if (
      event.pointerType !== "touch" ||
      /** @type {Element} */ (event.target).closest(
        "a, button, input, textarea, summary, audio, video",
      )
    )
      return;
    from = { x: event.clientX, y: event.clientY };
    end();
    timer = window.setTimeout(does, PRESS_MS);
  });
  element.addEventListener("pointermove", (event) => {
    if (Math.hypot(event.clientX - from.x, event.clientY - from.y) > MOVED_PX) end();
  });
  for (const type of ["pointerup", "pointercancel"]) element.addEventListener(type, end);
  // The browser's own long-press menu would cover this one.
  element.addEventListener(
    "contextmenu",
    (event) =>
      /** @type {PointerEvent} */ (event).pointerType === "touch" && event.preventDefault(),
  );
}
