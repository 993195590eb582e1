/**
 * What Markdown leaves out: emphasis beside letters of scripts that are written without spaces, where a bare address ends
 * there, and a few tags that models write. `chat_app/markdown_scripts.py` has the same rules. Knows no DOM.
 */

const CJK = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\u3000-\u303f\uff00-\uffef]/u;
/** Punctuation of these scripts, which ends a sentence and is no part of an address. */
const AFTER_ADDRESS = /[\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\u2026\u201c\u201d\u2018\u2019]/;
const TAG = /^<(?:br ?\/?|\/?(?:sub|sup|kbd|mark))>/i;
const TAG_CHARS = 8;
const DETAILS = /^<details(?: open)?>\s*(?:<summary>(.*?)<\/summary>)?$/i;
const SUMMARY = /^<summary>(.*?)<\/summary>$/i;
const CODE_INDENT = 4;
/** Addresses that lead somewhere, and pictures, whose description is shown. */
const LINK = /^(?:https?:\/\/|mailto:|tel:|sms:|data:image\/(?:gif|png|jpeg|webp);|\/(?!\/))/i;

/** @param {string} text @param {number} at @param {boolean} isBefore */
const characterAt = (text, at, isBefore) => (isBefore ? Array.from(text.slice(Math.max(0, at - 2), at)).at(-1) : Array.from(text.slice(at, at + 2))[0]) ?? " ";

/** The rule of CommonMark for delimiters, with the amendment that a letter or sign of CJK is like a space beside punctuation. @param {any} parser */
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
      const isSign = (/** @type {string} */ one) => !CJK.test(one) && (isMdAsciiPunct(one.codePointAt(0)) || isPunctChar(one));
      const isOpen = !isSpace(after) && (!isSign(after) || isSpace(before) || isSign(before) || CJK.test(before));
      const isClosed = !isSpace(before) && (!isSign(before) || isSpace(after) || isSign(after) || CJK.test(after));
      return {
        can_open: isOpen && (canSplitWord || !isClosed || isSign(before)),
        can_close: isClosed && (canSplitWord || !isOpen || isSign(after)),
        length: end - start,
      };
    }
  };
}

/** A rule for the tokens of a whole text: a bare address ends before such punctuation. @param {any} state */
function bareLinks(state) {
  for (const { type, children } of state.tokens) {
    if (type !== "inline" || !children) continue;
    for (let at = children.length - 3; at >= 0; at -= 1) {
      const [open, text] = children.slice(at, at + 2);
      if (open.type !== "link_open" || open.markup !== "linkify" || text.type !== "text") continue;
      const end = text.content.search(AFTER_ADDRESS);
      if (end === -1) continue;
      const rest = Object.assign(new state.Token("text", "", 0), { content: text.content.slice(end), level: open.level });
      text.content = text.content.slice(0, end);
      open.attrSet("href", state.md.normalizeLink(text.content));
      children.splice(at + 3, 0, rest);
    }
  }
}

/** A rule for what is in a line: the few tags that models write, which are sanitised with the rest. @param {any} state @param {boolean} silent */
function tags(state, silent) {
  const tag = TAG.exec(state.src.slice(state.pos, Math.min(state.posMax, state.pos + TAG_CHARS)))?.[0];
  if (!tag) return false;
  if (!silent) state.push("tag", "", 0).content = /^<br/i.test(tag) ? "<br>" : tag.toLowerCase();
  state.pos += tag.length;
  return true;
}

/** @param {any} state @param {number} line */
const lineOf = ({ src, bMarks, tShift, eMarks }, line) => src.slice(bMarks[line] + tShift[line], eMarks[line]).trim();

/** The line of the closing tag, or that after the last line of the container. @param {any} state @param {number} line @param {number} endLine */
function endOfDetails(state, line, endLine) {
  let depth = 1;
  for (; line < endLine; line += 1) {
    const text = lineOf(state, line);
    if (text && state.sCount[line] < state.blkIndent) return line;
    if (DETAILS.test(text)) depth += 1;
    else if (text.toLowerCase() === "</details>") depth -= 1;
    if (depth === 0) return line;
  }
  return endLine;
}

/** A rule for blocks: `<details>` on a line of its own, up to its end or that of the text. @param {any} state @param {number} startLine @param {number} endLine @param {boolean} silent */
function details(state, startLine, endLine, silent) {
  const opening = DETAILS.exec(lineOf(state, startLine));
  if (!opening || state.sCount[startLine] - state.blkIndent >= CODE_INDENT) return false;
  if (silent) return true;
  const onLine = opening[1] === undefined && startLine + 1 < endLine ? SUMMARY.exec(lineOf(state, startLine + 1)) : null;
  const first = startLine + (onLine ? 2 : 1);
  const last = endOfDetails(state, first, endLine);
  state.push("details_open", "details", 1).map = [startLine, last];
  state.push("summary_open", "summary", 1);
  Object.assign(state.push("inline", "", 0), { content: (opening[1] ?? onLine?.[1] ?? "").trim() || "…", map: [startLine, first], children: [] });
  state.push("summary_close", "summary", -1);
  const { parentType, lineMax } = state;
  Object.assign(state, { parentType: "details", lineMax: last });
  state.md.block.tokenize(state, first, last);
  Object.assign(state, { parentType, lineMax });
  state.push("details_close", "details", -1);
  state.line = Math.min(last + 1, endLine);
  return true;
}

/** @param {any} parser of markdown-it */
export function addScripts(parser) {
  parser.inline.ruler.before("autolink", "tags", tags);
  parser.block.ruler.before("fence", "details", details, { alt: ["paragraph", "reference", "blockquote", "list"] });
  parser.renderer.rules.tag = (/** @type {import("./types.js").Token[]} */ tokens, /** @type {number} */ at) => tokens[at].content;
  addEmphasis(parser);
  parser.core.ruler.after("linkify", "bare_links", bareLinks);
  parser.validateLink = (/** @type {string} */ url) => LINK.test(url.trim());
}
