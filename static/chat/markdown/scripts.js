/**
 * Extensions of Markdown: emphasis beside letters of scripts written without spaces, the ends of
 * bare addresses, and a few tags that models write. `chat_app/markdown_scripts.py` has the same
 * rules. Knows no DOM.
 */

const UNSPACED =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{scx=Tibetan}\u3000-\u303f\uff00-\uffef]/u;
/** Punctuation that usually has no space after it when it ends a bold heading: `**Note:**text`. */
const CLOSING_SIGN = /[:;.,!?%)\]}"']|(?![\0-\x7f])[\p{Pe}\p{Pf}\p{Po}]/u;
const LETTER = /[\p{L}\p{N}]/u;
/** Punctuation of any script that ends a sentence and does not belong to an address. */
const AFTER_ADDRESS =
  /[\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff61-\uff64\u2014\u2018-\u201f\u2026\u2039\u203a\u203c\u2047-\u2049\u00ab\u00bb\u200b\u2060\u055d\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u0f0d-\u0f11\u104a\u104b\u1361-\u1368\u17d4\u17d5]/;
const LAST_SIGN = /^(?::|(?![\0-\x7f])\p{P})$/u;
const TAG = /^<(?:br {0,3}\/?|\/?(?:sub|sup|kbd|mark))>/i;
const TAG_CHARS = 9;
const DETAILS = /^<details(?: open)?>\s*(?:<summary>(.*?)<\/summary>\s*)?/i;
const SUMMARY = /^<summary>(.*?)<\/summary>$/is;
const SUMMARY_LINES = 8;
const END_OF_DETAILS = "</details>";
const CODE_INDENT = 4;
/** Addresses of working links, and embedded images, which are shown by their descriptions. */
const LINK =
  /^(?:https?:\/\/[^\s/?#[\]\\:%]|(?:mailto|tel|sms):\S|data:image\/(?:gif|png|jpeg|webp);|\/(?!\/))/i;

/** @param {string} text @param {number} at @param {boolean} isBefore */
const characterAt = (text, at, isBefore) =>
  (isBefore
    ? Array.from(text.slice(Math.max(0, at - 2), at)).at(-1)
    : Array.from(text.slice(at, at + 2))[0]) ?? " ";

/**
 * CommonMark's rule for delimiters, with two additions: a letter of a script without spaces counts
 * as a space beside punctuation, and `**` also closes between punctuation and a letter.
 * @param {any} parser
 */
function addEmphasis(parser) {
  const { isPunctChar, isMdAsciiPunct, isWhiteSpace } = parser.utils;
  parser.inline.State = class extends parser.inline.State {
    /** @param {number} start @param {boolean} canSplitWord */
    scanDelims(start, canSplitWord) {
      const marker = this.src[start];
      let end = start;
      while (end < this.posMax && this.src[end] === marker) end += 1;
      const before = characterAt(this.src, start, true);
      const after = end < this.posMax ? characterAt(this.src, end, false) : " ";
      const isSpace = (/** @type {string} */ one) => isWhiteSpace(one.codePointAt(0));
      const isSign = (/** @type {string} */ one) =>
        !UNSPACED.test(one) && (isMdAsciiPunct(one.codePointAt(0)) || isPunctChar(one));
      const isOpen =
        !isSpace(after) &&
        (!isSign(after) || isSpace(before) || isSign(before) || UNSPACED.test(before));
      const isClosed =
        !isSpace(before) &&
        (!isSign(before) || isSpace(after) || isSign(after) || UNSPACED.test(after));
      return {
        can_open: isOpen && (canSplitWord || !isClosed || isSign(before)),
        can_close:
          (isClosed && (canSplitWord || !isOpen || isSign(after))) ||
          (marker === "*" && end - start > 1 && LETTER.test(after) && CLOSING_SIGN.test(before)),
        length: end - start,
      };
    }
  };
}

/** End bare addresses before punctuation of any script. @param {any} linkify */
function endAddresses(linkify) {
  const whole = linkify.__schemas__["http:"].validate;
  /** @param {string} text @param {number} position behind the scheme @param {any} self */
  const validate = (text, position, self) => {
    let address = text.slice(position, position + whole(text, position, self));
    const end = address.search(AFTER_ADDRESS);
    if (end >= 0) address = address.slice(0, end);
    while (address && LAST_SIGN.test(characterAt(address, address.length, true)))
      address = address.slice(0, -characterAt(address, address.length, true).length);
    return /[^/]/.test(address) ? address.length : 0;
  };
  linkify.add("http:", { validate });
}

/**
 * A rule for the tokens of a whole text: links without an address are shown as written.
 * @param {any} state
 */
function deadLinks(state) {
  for (const { children } of state.tokens) {
    let level = 0;
    for (const child of children ?? []) {
      if (child.type === "link_open" && !child.attrGet("href")) {
        level += 1;
        Object.assign(child, { type: "text", tag: "", nesting: 0, content: "[" });
      } else if (child.type === "link_close" && level) {
        level -= 1;
        Object.assign(child, { type: "text", tag: "", nesting: 0, content: "]()" });
      }
    }
  }
}

/**
 * The inline rule for the few tags that models write, which are sanitised with the rest.
 * @param {any} state
 * @param {boolean} silent
 */
function tags(state, silent) {
  const tag = TAG.exec(
    state.src.slice(state.pos, Math.min(state.posMax, state.pos + TAG_CHARS)),
  )?.[0];
  if (!tag) return false;
  if (!silent) state.push("tag", "", 0).content = /^<br/i.test(tag) ? "<br>" : tag.toLowerCase();
  state.pos += tag.length;
  return true;
}

/** @param {any} state @param {number} line */
const lineOf = ({ src, bMarks, tShift, eMarks }, line) =>
  src.slice(bMarks[line] + tShift[line], eMarks[line]).trim();

/**
 * The line after the content, and where its last line ends: before a closing tag on the same line.
 * @param {any} state
 * @param {number} line
 * @param {number} endLine
 */
function endOfDetails(state, line, endLine) {
  let depth = 1;
  for (; line < endLine; line += 1) {
    const text = lineOf(state, line);
    if (text && state.sCount[line] < state.blkIndent) break;
    if (DETAILS.test(text)) depth += 1;
    if (!text.toLowerCase().endsWith(END_OF_DETAILS)) continue;
    depth -= 1;
    if (depth > 0) continue;
    if (text.length === END_OF_DETAILS.length) break;
    return [line + 1, state.src.lastIndexOf("<", state.eMarks[line] - 1)];
  }
  return [line, state.eMarks[line - 1]];
}

/**
 * The line after a summary on lines of its own, and its text.
 * @param {any} state
 * @param {number} line
 * @param {number} endLine
 * @returns {[number, string|undefined]}
 */
function summaryAt(state, line, endLine) {
  let first = line;
  while (first < endLine && !lineOf(state, first)) first += 1;
  const lines = [];
  for (let at = first; at < Math.min(first + SUMMARY_LINES, endLine); at += 1) {
    lines.push(lineOf(state, at));
    const match = SUMMARY.exec(lines.join("\n"));
    if (match) return [at + 1, match[1].trim().replace(/\s+/g, " ")];
  }
  return [line, undefined];
}

/**
 * The block rule for `<details>` at the start of a line, up to its closing tag or the end of the
 * text.
 * @param {any} state
 * @param {number} startLine
 * @param {number} endLine
 * @param {boolean} silent
 */
function details(state, startLine, endLine, silent) {
  const opening = DETAILS.exec(lineOf(state, startLine));
  if (!opening || state.sCount[startLine] - state.blkIndent >= CODE_INDENT) return false;
  if (silent) return true;
  const { bMarks, tShift, eMarks } = state;
  const lineStart = [bMarks[startLine], tShift[startLine]];
  // Text on the tag's line is the first line of the content.
  bMarks[startLine] += tShift[startLine] + opening[0].length;
  tShift[startLine] = 0;
  let [first, summary] = [startLine, opening[1]];
  if (!lineOf(state, startLine)) {
    first += 1;
    if (summary === undefined)
      [first, summary] = /** @type {[number, string]} */ (summaryAt(state, first, endLine));
  }
  const [last, endOfText] = endOfDetails(state, first, endLine);
  const isClosed = last < endLine && lineOf(state, last).toLowerCase() === END_OF_DETAILS;
  state.push("details_open", "details", 1).map = [startLine, last];
  state.push("summary_open", "summary", 1);
  Object.assign(state.push("inline", "", 0), {
    content: (summary ?? "").trim() || "…",
    map: [startLine, first],
    children: [],
  });
  state.push("summary_close", "summary", -1);
  const { parentType, lineMax } = state;
  const lineEnd = eMarks[last - 1];
  eMarks[last - 1] = endOfText;
  Object.assign(state, { parentType: "details", lineMax: last });
  state.md.block.tokenize(state, first, last);
  Object.assign(state, { parentType, lineMax });
  eMarks[last - 1] = lineEnd;
  [bMarks[startLine], tShift[startLine]] = lineStart;
  state.push("details_close", "details", -1);
  state.line = last + (isClosed ? 1 : 0);
  return true;
}

/** @param {any} parser of markdown-it */
export function addScripts(parser) {
  parser.inline.ruler.before("autolink", "tags", tags);
  parser.block.ruler.before("fence", "details", details, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  parser.renderer.rules.tag = (
    /** @type {import("./types.js").Token[]} */ tokens,
    /** @type {number} */ at,
  ) => tokens[at].content;
  addEmphasis(parser);
  endAddresses(parser.linkify);
  parser.core.ruler.after("linkify", "dead_links", deadLinks);
  parser.validateLink = (/** @type {string} */ url) => LINK.test(url.trim());
}
