/** The beginning of a message on one line, as lists, notices and quotes show it. Knows no DOM. */

/** What of a long text is looked at. */
const LOOKED_AT = 4_000;

/**
 * The beginning of a text without the marks of Markdown, with "…" where there is more.
 * @param {string} text @param {number} most how many characters
 */
export function beginningOf(text, most) {
  const line = text.slice(0, LOOKED_AT)
    .replace(/!?\[([^\]\n]{0,500})\]\([^)\s]{0,2000}\)/g, "$1")
    .replace(/```\w*|\*\*|~~|`|^(?:#{1,6}|>|[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] )?/gm, "")
    .replace(/\s+/g, " ").trim();
  const signs = Array.from(line);
  return signs.length > most ? `${signs.slice(0, most).join("")}…` : line;
}
