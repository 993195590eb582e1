/**
 * What draws diagrams, for the page of one diagram: `make vendor` writes it to
 * static/vendor/mermaid/mermaid.js.
 */

import mermaid from "mermaid";

globalThis.mermaid = mermaid;
