/**
 * Reduces a message to one line without Markdown syntax, for lists, notices, quotes and search.
 * Knows no DOM.
 */

/** How much of a long text is examined. */
const LOOKED_AT = 4_000;

/** Return a text on one line, without Markdown syntax. @param {string} text */
export const plainOf = (text) =>
  text
    .replace(/!?\[([^\]\n]{0,500})\]\([^)\s]{0,2000}\)/g, "$1")
    // Table delimiter rows, horizontal rules, and table edges.
    .replace(/^[ \t]*[|:-][ \t|:-]{2,}$|^\| ?| ?\|$/gm, "")
    .replace(/```\w*|\*\*|~~|`|^(?:#{1,6}|>|[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] )?/gm, "")
    .replace(/<\/?(?:sub|sup|kbd|mark)>/gi, "")
    .replace(/<(?:br ?\/?|\/?(?:details(?: open)?|summary))>/gi, " ")
    // Emphasis by a single mark, but not literal marks ("2 * 3", snake_case).
    .replace(
      /(?<![\p{L}\p{N}*_\\])([*_])(?=[^\s*_])([^*_\n]{0,500}[^\s*_\n])\1(?![\p{L}\p{N}*_])/gu,
      "$2",
    )
    .replace(/\s+/g, " ")
    .trim();

/**
 * Return the beginning of a text without Markdown syntax, with "…" if there is more.
 * @param {string} text @param {number} most how many characters
 */
export function beginningOf(text, most) {
  const line = plainOf(text.slice(0, LOOKED_AT));
  const signs = Array.from(line);
  return signs.length > most ? `${signs.slice(0, most).join("")}…` : line;
}
