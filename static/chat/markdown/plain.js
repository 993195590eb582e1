/**
 * A message on one line without the marks of Markdown, as lists, notices, quotes and search show
 * it. Knows no DOM.
 */

/** What of a long text is looked at. */
const LOOKED_AT = 4_000;

/** A text on one line, without the marks of Markdown. @param {string} text */
export const plainOf = (text) =>
  text
    .replace(/!?\[([^\]\n]{0,500})\]\([^)\s]{0,2000}\)/g, "$1")
    // The line below the head of a table, a line across the page, and the edges of a table.
    .replace(/^[ \t]*[|:-][ \t|:-]{2,}$|^\| ?| ?\|$/gm, "")
    .replace(/```\w*|\*\*|~~|`|^(?:#{1,6}|>|[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] )?/gm, "")
    .replace(/<\/?(?:sub|sup|kbd|mark)>/gi, "")
    .replace(/<(?:br ?\/?|\/?(?:details(?: open)?|summary))>/gi, " ")
    // Emphasis by one mark, unless it stands for itself ("2 * 3", snake_case).
    .replace(
      /(?<![\p{L}\p{N}*_\\])([*_])(?=[^\s*_])([^*_\n]{0,500}[^\s*_\n])\1(?![\p{L}\p{N}*_])/gu,
      "$2",
    )
    .replace(/\s+/g, " ")
    .trim();

/**
 * The beginning of a text without the marks of Markdown, with "…" where there is more.
 * @param {string} text @param {number} most how many characters
 */
export function beginningOf(text, most) {
  const line = plainOf(text.slice(0, LOOKED_AT));
  const signs = Array.from(line);
  return signs.length > most ? `${signs.slice(0, most).join("")}…` : line;
}
