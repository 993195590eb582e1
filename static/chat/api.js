/** The REST API of this server (`/api/v1`), with its problem documents (RFC 9457) as errors. */

import { formatAmount, formatDue } from "./money/amounts.js";
import { gettext, interpolate } from "./words.js";

/**
 * @typedef {object} Problem a problem document of the server (RFC 9457)
 * @property {string} [code]
 * @property {string} [title]
 * @property {string} [detail]
 * @property {{detail: string}[]} [errors] one for each wrong field
 * @property {{currency: string, balance_required?: string, balance_current?: string}} [payment]
 */

/**
 * The reason for a failure, for the user: one text for each wrong field, or one for the whole
 * request.
 * @param {number} status @param {Problem} problem
 */
function reasonOf(status, { errors = [], payment, detail, title }) {
  if (errors.length) return errors.map((error) => error.detail).join(" ");
  if (payment?.balance_required && payment.balance_current) {
    const { currency, balance_required: needed, balance_current: there } = payment;
    return interpolate(gettext("This needs %(needed)s, and you have %(there)s."), {
      needed: formatDue(needed, currency),
      there: formatAmount(there, currency),
    });
  }
  return (
    detail ||
    title ||
    (status
      ? interpolate(gettext("Error %(status)s."), { status })
      : gettext("Couldn't reach the server."))
  );
}

/** The server's error for a failed request; `status` is 0 if the server was not reached. */
export class ApiError extends Error {
  /** @param {number} status @param {Problem} [problem] */
  constructor(status, problem = {}) {
    super(reasonOf(status, problem));
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code || "";
  }
}

/**
 * Whether an error comes from the server, or says that it was not reached.
 * @param {unknown} error
 * @returns {error is ApiError}
 */
export const isApiError = (error) => error instanceof Error && error.name === "ApiError";

/** Whether a request failed because the server was not reached. @param {unknown} error */
export const isUnreached = (error) => isApiError(error) && error.status === 0;

export class Api {
  /** @param {string} csrfCookie name of the cookie whose value proves that the page is ours */
  constructor(csrfCookie) {
    this._csrfCookie = csrfCookie;
  }

  /**
   * @param {string} path below /api/v1, or from the root when it begins with /api/
   * @returns {Promise<any>} the answer
   */
  get(path) {
    return this._send("GET", path);
  }

  /**
   * The unparsed answer: parsing JSON here could change its numbers.
   * @param {string} path as for `get`
   * @returns {Promise<string>}
   */
  text(path) {
    return this._text("GET", path);
  }

  /**
   * @param {string} path
   * @param {any} [body]
   * @param {Record<string, string>} [headers]
   * @returns {Promise<any>} the answer
   */
  post(path, body, headers = {}) {
    return this.send("POST", path, body, headers);
  }

  /**
   * Send a body as JSON.
   * @param {string} method
   * @param {string} path below /api/v1, or from the root when it begins with /api/
   * @param {any} [body]
   * @param {Record<string, string>} [headers]
   * @returns {Promise<any>} the answer
   */
  send(method, path, body, headers = {}) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    return this._send(
      method,
      path,
      json,
      json === undefined ? undefined : "application/json",
      headers,
    );
  }

  /**
   * Send a form with files.
   * @param {string} method
   * @param {string} path
   * @param {FormData} form
   * @returns {Promise<any>}
   */
  sendForm(method, path, form) {
    return this._send(method, path, form);
  }

  /**
   * Store a file.
   * @param {File} file
   * @param {(fraction: number) => void} onProgress
   * @returns {{done: Promise<any>, abort: () => void}}
   */
  upload(file, onProgress) {
    // `fetch` does not report upload progress.
    const request = new XMLHttpRequest();
    const done = new Promise((resolve, reject) => {
      request.open("POST", "/api/v1/contents");
      request.setRequestHeader("X-CSRFToken", this.csrfToken());
      request.responseType = "json";
      request.upload.onprogress = (e) => e.lengthComputable && onProgress(e.loaded / e.total);
      request.onload = () =>
        request.status < 300
          ? resolve(request.response)
          : reject(new ApiError(request.status, request.response || {}));
      request.onerror = () => reject(new ApiError(0));
      request.onabort = () => reject(new DOMException(gettext("Upload removed."), "AbortError"));
    });
    const form = new FormData();
    form.append("file", file);
    request.send(form);
    return { done, abort: () => request.abort() };
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string|FormData} [body]
   * @param {string} [contentType]
   * @param {Record<string, string>} [more] headers
   * @returns {Promise<any>}
   */
  async _send(method, path, body, contentType, more = {}) {
    const text = await this._text(method, path, body, contentType, more);
    return text ? JSON.parse(text) : {};
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string|FormData} [body]
   * @param {string} [contentType]
   * @param {Record<string, string>} [more] headers
   * @returns {Promise<string>} JSON; "" for an answer of another type
   */
  async _text(method, path, body, contentType, more = {}) {
    /** @type {Record<string, string>} */
    const headers = { Accept: "application/json", ...more };
    if (contentType) headers["Content-Type"] = contentType;
    if (method !== "GET") headers["X-CSRFToken"] = this.csrfToken();
    let response;
    let text;
    try {
      const url = path.startsWith("/api/") ? path : `/api/v1${path}`;
      response = await fetch(url, { keepalive: method === "DELETE", method, headers, body });
      text = await response.text();
    } catch {
      throw new ApiError(0);
    }
    const isJson = (response.headers.get("Content-Type") || "").includes("json");
    if (!response.ok) throw new ApiError(response.status, isJson && text ? JSON.parse(text) : {});
    return isJson ? text : "";
  }

  /** The proof that a form or request comes from this page. @returns {string} */
  csrfToken() {
    // Read each time: signing in from another tab changes it.
    const prefix = `${this._csrfCookie}=`;
    const cookie = document.cookie.split("; ").find((pair) => pair.startsWith(prefix));
    return cookie ? cookie.slice(prefix.length) : "";
  }
}
