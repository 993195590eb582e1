/** The text that screen readers announce for a message: its content and its files. */

import { beginningOf } from "../markdown/plain.js";
import { gettext, interpolate } from "../words.js";

/** The maximum length of the content. */
const READ_CHARS = 500;

/** @param {{type: string, filename?: string, alt_text?: string, description?: string}} item */
function fileText({ type, filename, alt_text: alt, description }) {
  const name = filename || alt || description;
  if (type !== "image") return name;
  return name ? interpolate(gettext("picture: %(name)s"), { name }) : gettext("picture");
}

/** @param {import("../store/entry.js").Entry} entry */
export function spokenText({ content, content_items: items, deletedAt }) {
  if (deletedAt) return gettext("This message was deleted.");
  return (
    [beginningOf(content, READ_CHARS), ...(items ?? []).map(fileText)].filter(Boolean).join(", ") ||
    gettext("Files")
  );
}
