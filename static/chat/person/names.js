/** Names chats without a title. */

import { gettext } from "../words.js";
import { people } from "./looks.js";

/** The names of its other members. @param {import("../store/chat.js").Participant[]} others */
export const namesOf = (others) =>
  others.map(({ kind, name }) => (kind === "user" ? people.nameOf(name) : name)).join(", ") ||
  gettext("Notes to self");
