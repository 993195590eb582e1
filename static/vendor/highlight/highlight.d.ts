export { default as highlighter } from "highlight.js";
