/**
 * What draws the pages of a PDF file, as one module: `make vendor` writes it to
 * static/vendor/pdf/pdf.js.
 */

export { getDocument, GlobalWorkerOptions } from "pdfjs-dist/legacy/build/pdf.mjs";
