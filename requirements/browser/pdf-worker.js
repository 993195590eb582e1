/**
 * What reads a PDF file, as the module of a worker: `make vendor` writes it to
 * static/vendor/pdf-worker/pdf-worker.js.
 */

export { WorkerMessageHandler } from "pdfjs-dist/legacy/build/pdf.worker.mjs";
