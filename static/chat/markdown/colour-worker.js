/**
 * Colours code in a thread of its own: text comes in, pieces with the names of their kinds go out.
 */

import { highlighter } from "../../vendor/highlight/highlight.js";

/** @type {Record<string, string>} */
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/**
 * The pieces of what the highlighter makes: spans with one kind each, one in another, and escaped
 * text.
 * @param {string} html
 * @returns {[string, string][]}
 */
function piecesOf(html) {
  /** @type {[string, string][]} */
  const pieces = [];
  /** @type {string[]} */
  const kinds = [];
  for (const [, kind, end, text] of html.matchAll(/<span class="([^"]*)">|(<\/span>)|([^<]+)/g)) {
    if (kind !== undefined) kinds.push(kind);
    else if (end) kinds.pop();
    else
      pieces.push([
        text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]),
        kinds.at(-1) || "",
      ]);
  }
  return pieces;
}

addEventListener("message", ({ data: { code, language } }) => {
  const isKnown = highlighter.getLanguage(language);
  postMessage(
    isKnown
      ? piecesOf(highlighter.highlight(code, { language, ignoreIllegals: true }).value)
      : null,
  );
});

postMessage("ready");
