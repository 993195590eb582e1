/**
 * What the pages use of Lit, as one module: `make vendor` writes it to static/vendor/lit/lit.js.
 */

export { LitElement, html, nothing, render, svg } from "lit";
export { live } from "lit/directives/live.js";
export { repeat } from "lit/directives/repeat.js";
