/** The author of a message in a list of messages from several chats. */

import { me } from "../context.js";
import { people } from "../person/looks.js";
import { gettext } from "../words.js";

/** @param {"user"|"agent"} kind @param {string} name a username or an agent's name */
export function authorOf(kind, name) {
  if (kind === "agent") return name;
  return name === me.username ? gettext("You") : people.nameOf(name);
}
