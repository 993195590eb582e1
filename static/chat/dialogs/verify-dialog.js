/**
 * A dialog that verifies a chat in this browser: its log, the messages that the page shows, their
 * signatures (docs/log-chain.md), and the tree of log heads (docs/log-tree.md). It reads the export
 * as a stream and can be stopped.
 */

import { ApiError, isApiError } from "../api.js";
import { checkedLogs, page, store, threadPage } from "../context.js";
import { publishedKeys } from "../signature-keys.js";
import { glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { BadExport, ChatCheck } from "../../uamp/logs/chat-check.js";
import { LostStream, batchesOf } from "../../uamp/logs/lines.js";
import { DialogView } from "./dialog-view.js";
import { factsOf, gapsOf, sentenceOf, verdictText } from "./verify-words.js";
import { gettext, interpolate, ngettext } from "../words.js";

/**
 * @typedef {import("../store/chat.js").Chat} Chat
 * @typedef {import("../../uamp/logs/chat-check.js").ChatResult} ChatResult
 * @typedef {import("../../uamp/logs/chat-check.js").Problem} Problem
 */

/** @param {string} chatId */
const exportOf = (chatId) =>
  `/api/v1/chats/${encodeURIComponent(chatId)}/export?format=ndjson&log=true`;

/** @param {Response} response @returns {Promise<ApiError>} */
async function errorOf(response) {
  const isProblem = (response.headers.get("Content-Type") ?? "").includes("json");
  return new ApiError(response.status, isProblem ? await response.json() : {});
}

/**
 * The result of a request, whose failure is that of the connection.
 * @template T
 * @param {Promise<T>} request
 * @returns {Promise<T>}
 */
const reached = (request) =>
  request.catch((error) => {
    throw error instanceof TypeError ? new ApiError(0) : error;
  });

/** The keys of the server, where a check reads them. */
const KEYS = {
  /** @param {string} kid */
  of: (kid) => reached(publishedKeys.of(kid)),
  ofLogs: () => reached(publishedKeys.ofLogs()),
};

/**
 * What the server publishes of the tree; null if there is nothing at the path.
 * @template T
 * @param {string} path
 * @param {(response: Response) => Promise<T>} read
 */
async function ofTree(path, read) {
  const response = await fetch(`/log-tree/${path}`, { cache: "no-store" });
  if (response.status === 404) return null;
  if (!response.ok) throw await errorOf(response);
  return read(response);
}

/** The tree of log heads, where a check reads it. */
/** @type {import("../../uamp/logs/tree-check.js").TreeSource} */
const TREE = {
  keys: () => reached(publishedKeys.ofTree()),
  newest: () => reached(ofTree("checkpoint", (response) => response.text())),
  consistency: (from, to) =>
    reached(
      ofTree(
        `consistency?from=${from}&to=${to}`,
        async (response) => (await response.json()).hashes,
      ),
    ),
};

/** The messages of a chat that the page shows now. @param {string} chatId */
const shownIn = (chatId) =>
  [page, threadPage].flatMap(({ state }) =>
    state.chatId === chatId ? state.entries.filter(({ deletedAt }) => !deletedAt) : [],
  );

/** Fires (bubbling) `open-message` for a message with a problem. */
export class VerifyDialog extends DialogView {
  static properties = {
    _chat: { state: true },
    _progress: { state: true },
    _result: { state: true },
  };

  constructor() {
    super();
    /** @type {Chat|null} */
    this._chat = null;
    /** @type {ChatCheck["progress"]} */
    this._progress = { messages: 0, entries: 0, total: 0 };
    /** @type {ChatResult|null} */
    this._result = null;
    this._stop = new AbortController();
  }

  /** @param {Chat} chat */
  async open(chat) {
    Object.assign(this, { _chat: chat, _result: null });
    this._progress = { messages: 0, entries: 0, total: 0 };
    this._stop = new AbortController();
    await this._show();
    await this._attempt(() => this._verify(chat.id, this._stop.signal));
  }

  /** @param {string} chatId @param {AbortSignal} signal */
  async _verify(chatId, signal) {
    try {
      const result = await this._checked(chatId, signal);
      if (signal.aborted) return;
      checkedLogs.keep(chatId, result);
      this._result = result;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LostStream) throw new ApiError(0);
      if (error instanceof BadExport || error instanceof SyntaxError)
        throw new ApiError(0, { detail: gettext("The chat couldn't be read to the end.") });
      if (!isApiError(error)) this._error = gettext("The check failed.");
      throw error;
    }
  }

  /** @param {string} chatId @param {AbortSignal} signal @returns {Promise<ChatResult>} */
  async _checked(chatId, signal) {
    // Browsers have no cryptography for pages without https.
    if (!crypto.subtle)
      throw new ApiError(0, {
        detail: gettext("This browser can't verify the chat here. It needs an https address."),
      });
    const response = await reached(fetch(exportOf(chatId), { signal, cache: "no-store" }));
    if (!response.ok || !response.body) throw await errorOf(response);
    const check = new ChatCheck(chatId, KEYS, { known: checkedLogs.of(chatId), tree: TREE });
    for await (const lines of batchesOf(response.body)) {
      await check.add(lines);
      this._progress = check.progress;
    }
    return check.finish(shownIn(chatId));
  }

  render() {
    const chat = this._chat;
    if (!chat) return html`<dialog class="dialog"></dialog>`;
    return html`<dialog
      class="dialog"
      aria-labelledby="verify-title"
      data-testid="verify-dialog"
      @close=${() => this._stop.abort()}
    >
      <div class="dialog-form">
        ${this._head("verify-title", gettext("Verify the chat"))}
        <div class="dialog-body verify">
          <p class="quiet">
            ${interpolate(
              gettext(
                "This browser checks every message of %(name)s against the log, its hash chain and the published keys.",
              ),
              { name: store.nameOf(chat) },
            )}
          </p>
          ${this._problem()}
          ${this._result ? this._outcome(this._result, chat) : this._error ? nothing : this._work()}
        </div>
      </div>
    </dialog>`;
  }

  _work() {
    const { messages, entries, total } = this._progress;
    const text = total
      ? interpolate(
          ngettext("%(n)s of %(total)s log entry", "%(n)s of %(total)s log entries", total),
          { n: entries, total },
        )
      : interpolate(ngettext("%(n)s message", "%(n)s messages", messages), { n: messages });
    return html`<progress
        max=${total || 1}
        value=${total ? Math.min(entries, total) : nothing}
        aria-label=${gettext("Verifying")}
      ></progress>
      <p class="quiet" data-testid="verify-progress">${text}</p>
      <button
        type="button"
        class="button"
        data-testid="verify-stop"
        @click=${() => this._close()}
      >
        ${gettext("Cancel")}
      </button>`;
  }

  /** @param {ChatResult} result @param {Chat} chat */
  _outcome(result, chat) {
    const { verdict, problems, problemCount } = result;
    const gaps = gapsOf(result);
    return html`<p
        class="verify-verdict ${problemCount ? "is-bad" : ""}"
        role="status"
        data-testid="verify-verdict"
        data-verdict=${verdict}
        data-problems=${problemCount}
      >
        ${glyph(verdict === "unchanged" ? "seal" : "alert")}<b>${verdictText(result)}</b>
      </p>
      ${
        problems.length
          ? html`<ol class="verify-problems">
              ${problems.map((problem) => this._problemRow(problem, chat))}
            </ol>`
          : nothing
      }
      ${
        gaps.length
          ? html`<ul class="verify-facts" data-testid="verify-gaps">
              ${gaps.map((text) => html`<li>${text}</li>`)}
            </ul>`
          : nothing
      }
      <ul class="verify-facts quiet">
        ${factsOf(result).map((text) => html`<li>${text}</li>`)}
      </ul>`;
  }

  /** @param {Problem} problem @param {Chat} chat */
  _problemRow(problem, chat) {
    const { kind, seq, messageId } = problem;
    return html`<li data-testid="verify-problem" data-kind=${kind} data-seq=${seq}>
      <span>${sentenceOf(problem)}</span>
      ${
        seq
          ? html`<small class="quiet">${interpolate(gettext("Entry %(seq)s"), { seq })}</small>`
          : nothing
      }
      ${
        messageId
          ? html`<button
              type="button"
              class="link"
              @click=${() => this._openMessage(chat.id, messageId)}
            >
              ${gettext("Show message")}
            </button>`
          : nothing
      }
    </li>`;
  }

  /** @param {string} chatId @param {string} messageId */
  _openMessage(chatId, messageId) {
    this._close();
    this.dispatchEvent(
      new CustomEvent("open-message", { bubbles: true, detail: { chatId, messageId } }),
    );
  }
}
customElements.define("verify-dialog", VerifyDialog);
