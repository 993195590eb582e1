/**
 * Highlights code on its own thread: takes text, and returns pieces with the names of their kinds.
 */

import { highlighter } from "../../vendor/highlight/highlight.js";

/** @type {Record<string, string>} */
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/**
 * The pieces of the highlighter's HTML: nested spans of one kind each, and escaped text.
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
