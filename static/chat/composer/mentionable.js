/** The members that a message can mention. */

import { store } from "../context.js";
import { priceText } from "../money/price.js";
import { face } from "../view.js";

/**
 * Agents first, then people of the chat.
 * @param {import("../store/chat.js").Chat|undefined} chat
 */
export function mentionable(chat) {
  const others = chat ? store.others(chat) : [];
  return others
    .toSorted((a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name))
    .map((member) => ({
      name: member.name,
      note:
        member.kind === "agent"
          ? priceText(member.pricing) || "agent"
          : member.display_name || "person",
      picture: face(member.name, member.kind),
    }));
}
