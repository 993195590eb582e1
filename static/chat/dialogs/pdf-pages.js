/**
 * The pages of a PDF file, one below the other. A page is drawn when it comes near the view, and
 * released when it is far.
 */

import { View, spinner } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {typeof import("../../vendor/pdf/pdf.js")} Library
 * @typedef {Awaited<ReturnType<Library["getDocument"]>["promise"]>} PdfDocument
 * @typedef {Awaited<ReturnType<PdfDocument["getPage"]>>} PdfPage
 *
 * @typedef {object} Sheet one rendered page
 * @property {number} ratio its height, in its width
 * @property {string} text its text, for screen readers
 * @property {string} problem why it cannot be shown
 * @property {{cancel: () => void, promise: Promise<unknown>}|null} drawing
 */

/** The maximum number of pages shown. */
const PAGES = 300;
/** The maximum width and height of a drawn page, in pixels. */
const POINTS = 4_000;
/** Embedded pictures with more pixels are left out. */
const PICTURE_POINTS = 40_000_000;

const PROBLEMS = {
  PasswordException: () => gettext("This file is password-protected. Download it to open it."),
  ResponseException: () => gettext("This file can no longer be read."),
};

/** @param {string} path below the vendored libraries */
const vendored = (path) => String(new URL(`../../vendor/${path}`, import.meta.url));

/** Fetched with the first file. @type {Promise<Library>|null} */
let library = null;

/**
 * Fetch the library; a failed fetch is retried for the next file.
 * @returns {Promise<Library>}
 */
async function load() {
  try {
    const pdf = await import("../../vendor/pdf/pdf.js");
    pdf.GlobalWorkerOptions.workerSrc = vendored("pdf-worker/pdf-worker.js");
    return pdf;
  } catch (error) {
    library = null;
    throw error;
  }
}

/** The pages of the file at `src`. */
class PdfPages extends View {
  static properties = {
    src: {},
    width: { type: Number },
    _sheets: { state: true },
    _problem: { state: true },
    _isCut: { state: true },
  };

  constructor() {
    super();
    this.src = "";
    /** The width of a page, relative to the container. */
    this.width = 1;
    /** @type {Sheet[]|null} null until the file is open */
    this._sheets = null;
    this._problem = "";
    this._isCut = false;
    /** @type {ReturnType<Library["getDocument"]>|null} */
    this._task = null;
    /** @type {PdfDocument|null} */
    this._document = null;
    /** @type {IntersectionObserver|null} observes which pages are near */
    this._observer = null;
    /** @type {Set<number>} indexes of the pages that are near */
    this._near = new Set();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._close();
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues} changed */
  willUpdate(changed) {
    if (changed.has("src")) this._open(this.src);
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues} changed */
  updated(changed) {
    if (changed.has("_sheets") && this._sheets && !this._observer) this._observe();
    else if (changed.has("width")) for (const at of this._near) this._draw(at);
  }

  render() {
    if (this._problem) return html`<p class="dialog-error" role="alert">${this._problem}</p>`;
    const sheets = this._sheets;
    if (!sheets) return spinner(gettext("Loading"));
    const count = this._document?.numPages ?? sheets.length;
    return html`${
      this._isCut
        ? html`<p class="viewer-note">
            ${gettext("This is the beginning of the file. Download it to read the rest.")}
          </p>`
        : nothing
    }
    ${sheets.map((sheet, at) => {
      const label = interpolate(gettext("Page %(n)s of %(count)s"), { n: at + 1, count });
      return html`<figure
        class="pdf-page"
        data-at=${at}
        .style=${`--width: ${this.width}; --ratio: ${sheet.ratio}`}
      >
        <canvas
          role="img"
          aria-label=${label}
          aria-hidden=${sheet.problem ? "true" : "false"}
        ></canvas>
        <figcaption>
          ${label}${sheet.problem ? html`<p class="dialog-error">${sheet.problem}</p>` : nothing}
        </figcaption>
        <p class="visually-hidden" dir="auto">${sheet.text}</p>
      </figure>`;
    })}`;
  }

  /** @param {string} src */
  async _open(src) {
    this._close();
    this._problem = "";
    this._sheets = null;
    if (!src) return;
    try {
      const { getDocument } = await (library ||= load());
      if (this.src !== src || !this.isConnected) return;
      this._task = getDocument({
        url: src,
        cMapUrl: vendored("pdf-worker/cmaps/"),
        wasmUrl: vendored("pdf-worker/pictures/"),
        useWasm: false,
        useWorkerFetch: true,
        enableXfa: false,
        disableAutoFetch: true,
        disableStream: true,
        maxImageSize: PICTURE_POINTS,
        verbosity: 0,
      });
      const opened = await this._task.promise;
      const first = (await opened.getPage(1)).getViewport({ scale: 1 });
      if (this.src !== src || !this.isConnected) return;
      this._document = opened;
      this._isCut = opened.numPages > PAGES;
      this._sheets = Array.from({ length: Math.min(opened.numPages, PAGES) }, () => ({
        ratio: first.height / first.width,
        text: "",
        problem: "",
        drawing: null,
      }));
    } catch (error) {
      if (this.src === src && this.isConnected) this._problem = problemOf(error);
    }
  }

  _close() {
    this._observer?.disconnect();
    this._observer = null;
    this._near.clear();
    this._document = null;
    // This also ends the worker's jobs for the file.
    this._task?.destroy();
    this._task = null;
  }

  _observe() {
    this._observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const at = Number(/** @type {HTMLElement} */ (target).dataset.at);
          if (isIntersecting) this._near.add(at);
          else this._near.delete(at);
          if (isIntersecting) this._draw(at);
          else this._release(at);
        }
      },
      { root: this.closest(".viewer-place"), rootMargin: "60%" },
    );
    for (const figure of this.querySelectorAll("figure")) this._observer.observe(figure);
  }

  /** @param {number} at @returns {HTMLCanvasElement} */
  _canvas(at) {
    return /** @type {HTMLCanvasElement} */ (this.querySelectorAll("canvas")[at]);
  }

  /** @param {number} at the index of a page */
  async _draw(at) {
    const sheet = this._sheets?.[at];
    const opened = this._document;
    if (!sheet || !opened) return;
    try {
      const page = await opened.getPage(at + 1);
      if (this._document !== opened || !this._near.has(at)) return;
      const whole = page.getViewport({ scale: 1 });
      sheet.ratio = whole.height / whole.width;
      this.requestUpdate();
      await this.updateComplete;
      await this._paint(sheet, page, at);
      sheet.text ||= await textOf(page);
      this.requestUpdate();
    } catch (error) {
      // Ignore pages removed while they were being drawn; after a failure, other pages may still be
      // readable.
      if (this._document !== opened || isCancelled(error)) return;
      sheet.problem = gettext("This page can't be displayed.");
      this.requestUpdate();
    }
  }

  /** @param {Sheet} sheet @param {PdfPage} page @param {number} at */
  async _paint(sheet, page, at) {
    // The page may have moved far away while the previous one was awaited; far pages keep no
    // picture.
    if (!this._near.has(at)) return;
    const canvas = this._canvas(at);
    const whole = page.getViewport({ scale: 1 });
    const wanted = (canvas.clientWidth * devicePixelRatio) / whole.width;
    const viewport = page.getViewport({
      scale: Math.min(wanted, POINTS / Math.max(whole.width, whole.height)),
    });
    if (canvas.width === Math.floor(viewport.width) && !sheet.drawing) return;
    sheet.drawing?.cancel();
    // The old canvas stays until the new one is complete.
    const fresh = document.createElement("canvas");
    Object.assign(fresh, {
      width: Math.floor(viewport.width),
      height: Math.floor(viewport.height),
    });
    const drawing = page.render({ canvas: fresh, viewport });
    sheet.drawing = drawing;
    try {
      await drawing.promise;
    } finally {
      if (sheet.drawing === drawing) sheet.drawing = null;
    }
    if (!this._near.has(at)) return;
    Object.assign(canvas, { width: fresh.width, height: fresh.height });
    canvas.getContext("2d")?.drawImage(fresh, 0, 0);
    fresh.width = 0;
  }

  /** @param {number} at */
  _release(at) {
    this._sheets?.[at]?.drawing?.cancel();
    this._canvas(at).width = 0;
  }
}
customElements.define("pdf-pages", PdfPages);

/** @param {unknown} error */
const isCancelled = (error) =>
  error instanceof Error && error.name === "RenderingCancelledException";

/** The message for a file that cannot be shown. @param {unknown} error */
function problemOf(error) {
  const name = /** @type {keyof typeof PROBLEMS} */ (error instanceof Error ? error.name : "");
  return PROBLEMS[name]?.() ?? gettext("No preview for this file. Download it to open it.");
}

/** The text of a page. @param {PdfPage} page */
async function textOf(page) {
  const { items } = await page.getTextContent();
  return items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
}
