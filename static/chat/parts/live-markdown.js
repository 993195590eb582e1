/**
 * Markdown of an answer while it grows: the browser draws it like the server will draw the stored
 * message (`chat_app/markdown.py` has the same parser, options and rules), but without colours in code.
 */

import { DOMPurify, MarkdownIt, remend } from "../../vendor/markdown/markdown.js";

const CONTENT_URL = /^\/api\/content\/[0-9a-f-]{36}$/i;
const LANGUAGE = /^[\w+#.-]{1,30}/;
const BARE_LINKS = 300;
const ALIGNMENT = /text-align:(left|center|right)/;

const TAGS = [
  "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol", "p", "pre", "s", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const ATTRIBUTES = ["href", "title", "target", "rel", "data-language", "src", "alt", "loading", "start", "data-src", "data-alt", "class"];

function codeBlock(code, info) {
  const language = LANGUAGE.exec(info.trim())?.[0] || "";
  const { escapeHtml } = parser.utils;
  return `<div class="code-block" data-language="${escapeHtml(language)}"><pre><code>${escapeHtml(code)}</code></pre></div>\n`;
}

function isRemote(source) {
  return URL.canParse(source) && ["http:", "https:"].includes(new URL(source).protocol);
}

function image(tokens, at, options, env, renderer) {
  const { escapeHtml } = parser.utils;
  const source = String(tokens[at].attrGet("src") || "");
  const alt = escapeHtml(renderer.renderInlineAsText(tokens[at].children || [], options, env));
  if (CONTENT_URL.test(source)) return `<img src="${source}" alt="${alt}" loading="lazy">`;
  return isRemote(source) ? `<span class="remote-image" data-src="${escapeHtml(source)}" data-alt="${alt}">${alt}</span>` : alt;
}

function cellOpen(tokens, at) {
  const side = ALIGNMENT.exec(String(tokens[at].attrGet("style") || ""))?.[1];
  return side ? `<${tokens[at].tag} class="align-${side}">` : `<${tokens[at].tag}>`;
}

function linkOpen(tokens, at, options, env, renderer) {
  tokens[at].attrSet("target", "_blank");
  tokens[at].attrSet("rel", "noopener nofollow noreferrer");
  return renderer.renderToken(tokens, at, options);
}

const parser = new MarkdownIt({ html: false, breaks: true, linkify: true });
// "main.py" and "notes.md" are file names in a chat, not hosts in Paraguay or Moldova.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
Object.assign(parser.renderer.rules, {
  fence: (tokens, at) => codeBlock(tokens[at].content, tokens[at].info),
  code_block: (tokens, at) => codeBlock(tokens[at].content, ""),
  image,
  table_open: () => '<div class="table-scroll"><table>\n',
  table_close: () => "</table></div>\n",
  th_open: cellOpen,
  td_open: cellOpen,
  link_open: linkOpen,
});

/** @param {string} text whose marks are complete @returns {DocumentFragment} safe to insert */
export function drawn(text) {
  parser.set({ linkify: text.split("://").length <= BARE_LINKS });
  return DOMPurify.sanitize(parser.render(text), {
    ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|\/(?!\/))/i,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** Draw the end of a text: a mark whose other half has not come yet counts as closed. */
export const drawnTail = (text) => drawn(remend(text, { linkMode: "text-only" }));
