/** The REST API of this server (`/api/v1`), with its problem documents (RFC 9457) as errors. */

import { shown } from "./amounts.js";
import { gettext, interpolate } from "./words.js";

/** What is wrong in words for people: of each field where fields are wrong, else of the request. */
function reasonOf(status, { errors = [], payment, detail, title }) {
  if (errors.length) return errors.map((error) => error.detail).join(" ");
  if (payment?.balance_required && payment.balance_current) {
    const { currency, balance_required: needed, balance_current: there } = payment;
    return interpolate(gettext("%(needed)s are needed, and you have %(there)s."), { needed: shown(needed, currency), there: shown(there, currency) });
  }
  return detail || title || (status ? interpolate(gettext("Error %(status)s."), { status }) : gettext("The server was not reached."));
}

/** What the server said about a request that failed; `status` is 0 when it was not reached. */
export class ApiError extends Error {
  constructor(status, problem = {}) {
    super(reasonOf(status, problem));
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code || "";
  }
}

export class Api {
  /** @param {string} csrfCookie name of the cookie whose value proves that the page is ours */
  constructor(csrfCookie) {
    this._csrfCookie = csrfCookie;
  }

  get(path) {
    return this._send("GET", path);
  }

  post(path, body, headers = {}) {
    return this.send("POST", path, body, headers);
  }

  /**
   * Send a body as JSON.
   * @param {string} path below /api/v1, or from the root when it begins with /api/
   * @param {Record<string, string>} [headers]
   */
  send(method, path, body, headers = {}) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    return this._send(method, path, json, json === undefined ? undefined : "application/json", headers);
  }

  /** Send a form with files. @param {string} method @param {string} path @param {FormData} form */
  sendForm(method, path, form) {
    return this._send(method, path, form);
  }

  /**
   * Store a file.
   * @param {File} file
   * @param {(fraction: number) => void} onProgress
   * @returns {{done: Promise<object>, abort: () => void}}
   */
  upload(file, onProgress) {
    // fetch does not report how much of the body has gone out.
    const request = new XMLHttpRequest();
    const done = new Promise((resolve, reject) => {
      request.open("POST", "/api/v1/contents");
      request.setRequestHeader("X-CSRFToken", this._csrfToken());
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

  async _send(method, path, body, contentType, more = {}) {
    const headers = { Accept: "application/json", ...more };
    if (contentType) headers["Content-Type"] = contentType;
    if (method !== "GET") headers["X-CSRFToken"] = this._csrfToken();
    let response;
    try {
      const url = path.startsWith("/api/") ? path : `/api/v1${path}`;
      response = await fetch(url, { method, headers, body });
    } catch {
      throw new ApiError(0);
    }
    const text = await response.text();
    const isJson = (response.headers.get("Content-Type") || "").includes("json");
    const answer = isJson && text ? JSON.parse(text) : {};
    if (!response.ok) throw new ApiError(response.status, answer);
    return answer;
  }

  _csrfToken() {
    // Read each time: signing in from another tab changes it.
    const prefix = `${this._csrfCookie}=`;
    const cookie = document.cookie.split("; ").find((pair) => pair.startsWith(prefix));
    return cookie ? cookie.slice(prefix.length) : "";
  }
}
