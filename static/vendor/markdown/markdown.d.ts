export { default as DOMPurify } from "dompurify";
export { default as MarkdownIt } from "markdown-it";
export { default as remend } from "remend";
