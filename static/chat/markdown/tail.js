/**
 * Completes the end of a growing text for rendering: a mark without its other half counts as
 * closed, and a possible beginning of a mark is left out until it is one. Knows no DOM.
 */

import { remend } from "../../vendor/markdown/markdown.js";
import { blocksOf } from "./parser.js";

/**
 * A last line that may be the beginning of a list, a heading, a quote, a fence, a rule or an
 * underline.
 */
const MARK_LINE =
  /(^|\n)([ \t]*(?:>[ \t]?)*)(?:[-*+_=][ \t]*(?:\[[ xX]?\]?[ \t]*)?|[-=_*][-=_* \t]+|\d{1,9}[.)]?[ \t]*|#{1,6}[ \t]*|`{1,}|~{1,}|\\[[(]?|\$\$?|>)$/;
/** Rows of a table before its second line is complete: they may still be a paragraph. */
const TABLE_HEAD = /(^|\n)[ \t]*\|[^\n]*(?:\n[ \t]*[|:\- \t]*)?$/;
/** Inline: an unfinished formula, address in angle brackets, entity, escape or emphasis. */
const OPEN_INLINE =
  /(?:\\\((?:(?!\\\))[^\n])*|<(?:https?:[^\s>]*|mailto:[^\s>]*|h|ht|htt|http|https)?|&#?\w{0,10}|\\|`{1,2}|[*_~]{1,3}|(?<!\S)!)$/;
const OPEN_DOLLAR = /(?<![\w$])\$\$?(?:(?=[^\s\d$])[^\n$]{0,60})?$/;
const IMAGE_TEXT = /!\[[^\]\n]*\]$/;
/** Text in brackets at the end, which may become the text of a link. */
const LINK_TEXT = /\[([^[\]\n]*)\]$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const FENCE_END = /\n {0,3}(?:`{1,}|~{1,})$/;
/**
 * The first line of a multi-line formula, with some of its text: a blank line would end the search
 * for its end.
 */
const FORMULA_LINE = /^ {0,3}(?:\$\$|\\\[)[ \t]*\S/;

/** @param {string} text */
const isTable = (text) =>
  blocksOf(text).some(({ html }) => html.includes('<div class="table-scroll">'));

/**
 * Return the last block of a growing text with its marks closed.
 * @param {string} text
 * @returns {string}
 */
export function completed(text) {
  // Code is shown as it is; formulas are shown once they are complete.
  if (FENCE.test(text)) return text.replace(FENCE_END, "");
  let tail = text;
  if (TABLE_HEAD.test(tail) && !isTable(tail)) tail = tail.replace(TABLE_HEAD, "");
  tail = tail.replace(MARK_LINE, "$1$2");
  const isInCode = (tail.replace(/`+$/, "").match(/`/g) || []).length % 2 === 1;
  if (!isInCode && (tail.match(/\$/g) || []).length % 2 === 1) tail = tail.replace(OPEN_DOLLAR, "");
  if (!isInCode)
    tail = tail.replace(OPEN_INLINE, "").replace(IMAGE_TEXT, "").replace(LINK_TEXT, "$1");
  return remend(tail, { linkMode: "text-only", katex: false });
}

/**
 * Splits a growing text, or its end beginning with its last block, into finished and unfinished
 * blocks.
 * @param {string} text
 * @param {boolean} grows
 * @param {{references?: object}} [env] as for `blocksOf`
 * @returns {{finished: import("./parser.js").Block[], length: number, last:
 *   import("./parser.js").Block[]}} the blocks that no longer change, their length in the
 *   text, and the blocks to render for the rest
 */
export function grown(text, grows, env = {}) {
  // An unfinished line may become anything: it finishes no block.
  const lines = text.slice(0, text.lastIndexOf("\n") + 1);
  const blocks = blocksOf(lines, env);
  const formula = formulaLine(lines);
  // Text after the beginning of a formula may still belong to it, and so may the block that
  // contains it.
  const count = Math.min(
    blocks.length - 1,
    formula === -1 ? Infinity : blocks.findLastIndex(({ line }) => line <= formula),
  );
  const finished = blocks.slice(0, Math.max(count, 0));
  const length = finished.length ? lineStart(text, blocks[finished.length].line) : 0;
  const rest = text.slice(length);
  const last = blocksOf(rest, env);
  if (!grows || !last.length) return { finished, length, last };
  const end = rest.slice(lineStart(rest, last[last.length - 1].line));
  return { finished, length, last: [...last.slice(0, -1), ...blocksOf(completed(end), env)] };
}

/**
 * The line at which a formula begins that may still be completed, or -1.
 * @param {string} text whole lines
 */
function formulaLine(text) {
  const lines = text.split("\n").slice(0, -1);
  const last = lines.findLastIndex((line) => !line.trim());
  return lines.findIndex((line, at) => at > last && FORMULA_LINE.test(line));
}

/** @param {string} text @param {number} line */
function lineStart(text, line) {
  let at = 0;
  for (let passed = 0; passed < line; passed += 1) at = text.indexOf("\n", at) + 1;
  return at;
}
