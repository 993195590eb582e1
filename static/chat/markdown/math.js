/**
 * Formulas in markdown: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` as a block.
 * `chat_app/markdown_rules.py` has the same rules. A dollar sign beside a space, a letter or a
 * digit is an amount. Knows no DOM.
 */

import { JOINED } from "../store/mentions.js";

/**
 * The maximum length of an inline formula: looking for the end of each dollar sign takes quadratic
 * time.
 */
const INLINE_CHARS = 1_000;
const WORD = /[\p{L}\p{N}_]/u;
const SPACE = /\s/;
/**
 * Characters that cannot begin a formula: a dollar sign before them ends an amount, or stands
 * alone.
 */
const CLOSING =
  /[)\]}"'\u201d\u2019\u00bb,.;:!?\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f\uff5d]/;
const JOINED_LETTER = new RegExp(`[${JOINED}]`, "u");
/** @type {Record<string, string>} */
const ENDS = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };

/** @param {string} text @param {number} at */
const isWord = (text, at) => at >= 0 && at < text.length && WORD.test(text[at]);

/** @param {string} text @param {number} at */
const isJoined = (text, at) => at >= 0 && at < text.length && JOINED_LETTER.test(text[at]);

/** Whether a closing bracket of any kind comes before its opening one. @param {string} formula */
function closesTooMuch(formula) {
  let depth = 0;
  for (const character of formula.replace(/\\(?:left|right)?./gs, "")) {
    if ("([{".includes(character)) depth += 1;
    else if (")]}".includes(character)) depth -= 1;
    if (depth < 0) return true;
  }
  return false;
}

/**
 * Find the end of a formula between single dollar signs, or -1. Letters of scripts without spaces
 * may adjoin it if there are none inside. A formula must not close brackets that it has not opened.
 * @param {string} text that holds the first of them
 * @param {number} from where the formula begins
 * @param {number} most it ends before
 */
function dollarEnd(text, from, most) {
  if (
    (isWord(text, from - 2) && !isJoined(text, from - 2)) ||
    from >= most ||
    SPACE.test(text[from]) ||
    CLOSING.test(text[from])
  )
    return -1;
  for (
    let end = text.indexOf("$", from + 1);
    end !== -1 && end < most;
    end = text.indexOf("$", end + 1)
  ) {
    if (text[end - 1] === "\\") continue;
    const formula = text.slice(from, end);
    if (SPACE.test(text[end - 1]) || closesTooMuch(formula)) return -1;
    if ((isJoined(text, from - 2) || isJoined(text, end + 1)) && JOINED_LETTER.test(formula))
      return -1;
    return isWord(text, end + 1) && !isJoined(text, end + 1) ? -1 : end;
  }
  return -1;
}

/**
 * The rule for inline formulas.
 * @param {import("./types.js").InlineState} state
 * @param {boolean} silent
 */
function inlineMath(state, silent) {
  const { pos, src: text } = state;
  const most = Math.min(state.posMax, pos + INLINE_CHARS);
  const mark = ["$$", "\\(", "$"].find((one) => text.startsWith(one, pos));
  if (!mark) return false;
  const from = pos + mark.length;
  const end =
    mark === "$" ? dollarEnd(text, from, most) : text.slice(0, most).indexOf(ENDS[mark], from);
  if (end === -1 || !text.slice(from, end).trim()) return false;
  if (!silent) state.push("math_inline", "span", 0).content = text.slice(from, end);
  state.pos = end + mark.length;
  return true;
}

/**
 * The rule for blocks of formulas.
 * @param {import("./types.js").BlockState} state
 * @param {number} startLine
 * @param {number} endLine
 * @param {boolean} silent
 */
function blockMath(state, startLine, endLine, silent) {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  /** @param {number} line */
  const lineOf = (line) =>
    state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trim();
  const first = lineOf(startLine);
  const mark = first.slice(0, 2);
  if (mark !== "$$" && mark !== "\\[") return false;
  const end = ENDS[mark];
  // A block that begins on a line of its own ends at the end of a line, or of the text; any other
  // is part of a paragraph.
  const isOpen = first === mark;
  const lines = [first.slice(2)];
  let line = startLine;
  while (isOpen ? !lines[lines.length - 1].endsWith(end) : !lines[lines.length - 1].includes(end)) {
    line += 1;
    const isOver = line >= endLine || (state.sCount[line] < state.blkIndent && lineOf(line) !== "");
    if (isOver && isOpen) break;
    if (isOver || (!isOpen && !lineOf(line))) return false;
    lines.push(lineOf(line));
  }
  const content = lines.join("\n").trim();
  const isClosed = content.endsWith(end);
  if (!isOpen && (!isClosed || content.indexOf(end) !== content.length - 2)) return false;
  if (silent) return true;
  const token = state.push("math_block", "div", 0);
  token.content = (isClosed ? content.slice(0, -2) : content).trim();
  token.map = [startLine, isClosed ? line + 1 : line];
  token.block = true;
  state.line = isClosed ? line + 1 : line;
  return true;
}

/** @param {any} parser of markdown-it */
export function addMath(parser) {
  const { escapeHtml } = parser.utils;
  parser.inline.ruler.before("escape", "math_inline", inlineMath);
  parser.block.ruler.before("fence", "math_block", blockMath, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  parser.renderer.rules.math_inline = (
    /** @type {import("./types.js").Token[]} */ tokens,
    /** @type {number} */ at,
  ) => `<span class="math">${escapeHtml(tokens[at].content)}</span>`;
  parser.renderer.rules.math_block = (
    /** @type {import("./types.js").Token[]} */ tokens,
    /** @type {number} */ at,
  ) => `<div class="math">${escapeHtml(tokens[at].content)}</div>\n`;
}
