/** Writes to the clipboard, even on pages without a secure context. */

import { h } from "../dom.js";

/** @param {string} text @returns {Promise<boolean>} whether the clipboard has the text now */
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (/** @type {any} */ error) {
      if (error.name !== "NotAllowedError") throw error;
    }
  }
  // Pages without a secure context have no clipboard API.
  const area = /** @type {HTMLTextAreaElement} */ (
    h("textarea", { class: "visually-hidden", readonly: true })
  );
  // A modal dialog makes the rest of the page inert.
  (document.querySelector("dialog[open]") || document.body).append(area);
  area.value = text;
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}
