/**
 * Renders Markdown as HTML in the browser. `chat_app/markdown.py` renders the same HTML on the
 * server, for pages and programs without this module: both use the same parser, options and rules.
 * Knows no DOM.
 */

import { MarkdownIt } from "../../vendor/markdown/markdown.js";
import { addMath } from "./math.js";
import { addMentions } from "./mentions.js";
import { addScripts } from "./scripts.js";
import { addTasks } from "./tasks.js";

const CONTENT_URL = /^\/api\/content\/[0-9a-f-]{36}$/i;
const LANGUAGE = /^[\w+#.-]{1,30}/;
const ALIGNMENT = /text-align:(left|center|right)/;
/** With more "://", bare addresses are not linked: finding them takes quadratic time. */
const BARE_LINKS = 300;
const NESTING = 20;

/**
 * @typedef {object} Block a self-contained piece of a text: a paragraph, a list, a table
 * @property {number} line at which it begins
 * @property {string} html not sanitised
 */

const parser = new MarkdownIt({ html: false, breaks: true, linkify: true, maxNesting: NESTING });
const { escapeHtml } = parser.utils;

/** @param {string} code @param {string} info of the fence */
function codeBlock(code, info) {
  const language = LANGUAGE.exec(info.trim())?.[0] || "";
  return `<div class="code-block" data-language="${escapeHtml(
    language,
  )}"><pre><code>${escapeHtml(code)}</code></pre></div>\n`;
}

/** @param {string} source */
function isRemote(source) {
  return URL.canParse(source) && ["http:", "https:"].includes(new URL(source).protocol);
}

/** A rule of the renderer. @type {import("./types.js").RenderRule} */
function image(tokens, at, options, env, renderer) {
  const source = String(tokens[at].attrGet("src") || "");
  const alt = escapeHtml(renderer.renderInlineAsText(tokens[at].children || [], options, env));
  if (CONTENT_URL.test(source)) return `<img src="${source}" alt="${alt}" loading="lazy">`;
  return isRemote(source)
    ? `<span class="remote-image" data-src="${escapeHtml(source)}" data-alt="${alt}">${alt}</span>`
    : alt;
}

/** A rule of the renderer. @type {import("./types.js").RenderRule} */
function cellOpen(tokens, at) {
  const side = ALIGNMENT.exec(String(tokens[at].attrGet("style") || ""))?.[1];
  return side ? `<${tokens[at].tag} class="align-${side}">` : `<${tokens[at].tag}>`;
}

/** A rule of the renderer. @type {import("./types.js").RenderRule} */
function linkOpen(tokens, at, options, _env, renderer) {
  if (!tokens[at].attrGet("href"))
    tokens[at].attrs = (tokens[at].attrs || []).filter(([name]) => name !== "href");
  tokens[at].attrSet("target", "_blank");
  tokens[at].attrSet("rel", "noopener nofollow noreferrer");
  return renderer.renderToken(tokens, at, options);
}

// "main.py" and "notes.md" are file names in a chat, not hosts in Paraguay or Moldova.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
addScripts(parser);
addMath(parser);
addTasks(parser);
addMentions(parser);
Object.assign(parser.renderer.rules, {
  fence: (/** @type {import("./types.js").Token[]} */ tokens, /** @type {number} */ at) =>
    codeBlock(tokens[at].content, tokens[at].info),
  code_block: (/** @type {import("./types.js").Token[]} */ tokens, /** @type {number} */ at) =>
    codeBlock(tokens[at].content, ""),
  image,
  table_open: () => '<div class="table-scroll"><table>\n',
  table_close: () => "</table></div>\n",
  th_open: cellOpen,
  td_open: cellOpen,
  link_open: linkOpen,
});

/**
 * Return the blocks of a text in order; text between two blocks belongs to neither.
 * @param {string} text
 * @param {{references?: object}} [env] keeps the link definitions that were read; the same for all
 *   pieces of one text
 * @returns {Block[]}
 */
export function blocksOf(text, env = {}) {
  parser.set({ linkify: text.split("://").length - 1 <= BARE_LINKS });
  const tokens = parser.parse(text, env);
  /** @type {Block[]} */
  const blocks = [];
  let start = 0;
  tokens.forEach((/** @type {import("./types.js").Token} */ token, /** @type {number} */ at) => {
    if (token.level > 0 || token.nesting > 0) return;
    const html = parser.renderer.render(tokens.slice(start, at + 1), parser.options, env);
    blocks.push({ line: tokens[start].map?.[0] ?? 0, html });
    start = at + 1;
  });
  return blocks;
}

/**
 * Return the beginning of a long text: as many whole blocks as fit.
 * @param {string} text
 * @param {number} most characters
 */
export function beginningOf(text, most) {
  const start = text.slice(0, most);
  const last = blocksOf(start).at(-1)?.line ?? 0;
  const lines = start.replace(/\r\n?/g, "\n").split("\n");
  return last > 0 ? lines.slice(0, last).join("\n") : start;
}
