/**
 * What draws an answer while it grows, as one module: `make vendor` writes it to
 * static/vendor/markdown/markdown.js.
 */

export { default as DOMPurify } from "dompurify";
export { default as MarkdownIt } from "markdown-it";
export { default as remend } from "remend";
