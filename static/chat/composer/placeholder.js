/** The placeholder of the composer. */

import { store } from "../context.js";
import { gettext, interpolate } from "../words.js";

const NAME_CHARS = 40;

/**
 * @param {import("../store/chat.js").Chat|undefined} chat
 * @param {string} thread its root; "" in the chat
 */
export function placeholder(chat, thread) {
  if (thread) return gettext("Reply");
  // A placeholder that does not fit would be cut off mid-letter.
  const to = chat && !matchMedia("(max-width: 519px)").matches ? brief(store.nameOf(chat)) : "";
  return to ? interpolate(gettext("Message %(name)s"), { name: to }) : gettext("Message");
}

/** @param {string} name */
function brief(name) {
  const characters = Array.from(name);
  return characters.length > NAME_CHARS ? `${characters.slice(0, NAME_CHARS).join("")}…` : name;
}
