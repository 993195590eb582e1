/** Turns pasted text that is too long for a message into a file. */

/** In UTF-16 units, as `maxlength` counts. */
export const MAX_TEXT = 100_000;

/**
 * @param {ClipboardEvent} event
 * @param {HTMLTextAreaElement} field
 * @returns {File|null} the text that does not fit into the field
 */
export function longText({ clipboardData: pasted }, { value, selectionStart, selectionEnd }) {
  const text = pasted?.getData("text/plain") ?? "";
  if (value.length - (selectionEnd - selectionStart) + text.length <= MAX_TEXT) return null;
  return new File([text], "pasted-text.txt", { type: "text/plain" });
}
