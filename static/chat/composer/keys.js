/** The meaning of the Enter key in the composer. */

import { settings } from "../context.js";

/** @param {KeyboardEvent} event @param {boolean} mayQueue @returns {"send"|"queue"|null} */
export function meaningOf({ key, altKey, ctrlKey, metaKey, shiftKey }, mayQueue) {
  if (key !== "Enter") return null;
  if (altKey && mayQueue) return "queue";
  const isSent = ctrlKey || metaKey || (settings.values.send_key === "enter" && !shiftKey);
  return isSent ? "send" : null;
}
