/** A button that copies a text, and says so to screen readers too. */

import { h } from "./dom.js";
import { gettext } from "./words.js";

const SAID_MS = 2_000;

/**
 * @param {string} label
 * @param {() => string} textOf
 * @param {HTMLElement} announcer a status region
 * @returns {HTMLElement|null} null where the page may not write to the clipboard
 */
export function copyButton(label, textOf, announcer) {
  if (!navigator.clipboard) return null;
  const button = h("button", { type: "button", class: "button copy", "data-testid": "copy" }, label);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(textOf());
    button.textContent = gettext("Copied");
    announcer.textContent = gettext("Copied.");
    setTimeout(() => {
      button.textContent = label;
      announcer.textContent = "";
    }, SAID_MS);
  });
  return button;
}
