/** What draws formulas, as one module: `make vendor` writes it to static/vendor/katex/katex.js. */

export { default as katex } from "katex";
