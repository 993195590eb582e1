/**
 * The client for programs outside a page, with an API key: node, and other runtimes with `fetch`.
 *
 *   import { ask, connect } from "uamp-client";
 *   const client = await connect({ url: "http://127.0.0.1:8000", key: "uak_…" });
 *   const chat = client.open("chat_…");
 *   for await (const piece of ask(chat, "@echo hello")) console.log(piece.text);
 *   client.close();
 */

import { UampClient, UampError } from "./client.js";
import { EventStreamSocket } from "./event-stream.js";
import { Outbox } from "./outbox.js";

/** How long an answer may be silent. */
const ANSWER_MS = 600_000;
/** How long to wait for an agent to start answering. */
const BEGIN_MS = 15_000;
/** How long a REST request may take, besides the time for which its body has the server `wait`. */
const REQUEST_MS = 60_000;
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 250;
const REFUSED = 4401;
const LOST = 1006;

/** Stores unacknowledged turns for as long as the program runs. @implements {Storage} */
export class MemoryStorage {
  constructor() {
    /** @type {Map<string, string>} */
    this._values = new Map();
  }

  get length() {
    return this._values.size;
  }

  clear() {
    this._values.clear();
  }

  /** @param {number} index */
  key(index) {
    return Array.from(this._values.keys())[index] ?? null;
  }

  /** @param {string} key */
  getItem(key) {
    return this._values.get(key) ?? null;
  }

  /** @param {string} key @param {string} value */
  setItem(key, value) {
    this._values.set(key, value);
  }

  /** @param {string} key */
  removeItem(key) {
    this._values.delete(key);
  }
}

/**
 * REST with a key: `GET`, and requests with an `idempotencyKey`, are retried if the server was not
 * reached or accepts no requests now, but not after a timeout: the first may still be running.
 */
export class Rest {
  /** @param {string} origin @param {string} key "" for a visitor */
  constructor(origin, key) {
    this.origin = origin;
    /** @type {Record<string, string>} */
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
  }

  /**
   * @param {string} path
   * @param {{method?: string, body?: {wait?: number, [name: string]: any},
   *   idempotencyKey?: string}} [request]
   * @returns {Promise<any>} the document; rejects with UampError for a refusal
   */
  async request(path, { method = "GET", body, idempotencyKey } = {}) {
    const headers = {
      ...this.headers,
      ...(body ? { "Content-Type": "application/json" } : {}),
      ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}),
    };
    const limitMs = REQUEST_MS + 1000 * (body?.wait ?? 0);
    const isRepeatable = method === "GET" || Boolean(idempotencyKey);
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS || !isRepeatable;
      let pause = FIRST_PAUSE_MS * 2 ** (attempt - 1);
      try {
        const answer = await fetch(this.origin + path, {
          method,
          headers,
          body: body && JSON.stringify(body),
          redirect: "error",
          signal: AbortSignal.timeout(limitMs),
        });
        if (answer.ok) return answer.status === 204 ? null : await answer.json();
        const problem = await answer.json().catch(() => ({}));
        const wait = Number(answer.headers.get("Retry-After") || 0);
        if (isLast || ![429, 502, 503, 504].includes(answer.status) || wait > 8) {
          throw Object.assign(
            new UampError({
              code: problem.code || `http_${answer.status}`,
              message: problem.detail || problem.title,
              details: problem,
            }),
            { status: answer.status },
          );
        }
        pause = Math.max(pause, 1000 * wait);
      } catch (error) {
        if (isLast || error instanceof UampError || isTimeout(error)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** The messages of a chat, oldest first. @param {string} chatId @returns {AsyncGenerator<any>} */
  async *history(chatId) {
    let cursor = "";
    do {
      const query = new URLSearchParams({
        order: "asc",
        limit: "200",
        ...(cursor ? { cursor } : {}),
      });
      const page = await this.request(`/api/v1/chats/${chatId}/messages?${query}`);
      yield* page.data;
      cursor = page.has_more ? page.next_cursor : "";
    } while (cursor);
  }

  /** @returns {Promise<string>} a ticket, good for one socket or stream */
  async ticket() {
    return (await this.request("/api/v1/tickets", { method: "POST" })).ticket;
  }
}

/** @param {unknown} error */
const isTimeout = (error) => error instanceof Error && error.name === "TimeoutError";

/** A WebSocket opened with a ticket: not every runtime lets programs set its headers. */
export class TicketSocket {
  /**
   * @param {string} url of the socket
   * @param {() => Promise<string>} ticket
   * @param {any} webSocket the class
   */
  constructor(url, ticket, webSocket) {
    /** @type {((event: any) => void)|null} */
    this.onopen = null;
    /** @type {((message: any) => void)|null} */
    this.onmessage = null;
    /** @type {((close: any) => void)|null} */
    this.onclose = null;
    /** @type {WebSocket|null} */
    this._socket = null;
    this._isOver = false;
    this._open(url, ticket, webSocket);
  }

  get readyState() {
    return this._isOver ? 3 : (this._socket?.readyState ?? 0);
  }

  /** @param {string} text */
  send(text) {
    this._socket?.send(text);
  }

  /** @param {number} [code] */
  close(code = 1000) {
    this._isOver = true;
    this._socket?.close(code);
  }

  /** @param {string} url @param {() => Promise<string>} ticket @param {any} webSocket */
  async _open(url, ticket, webSocket) {
    try {
      const query = new URLSearchParams({ ticket: await ticket() });
      if (this._isOver) return;
      this._socket = /** @type {WebSocket} */ (new webSocket(`${url}?${query}`));
    } catch (error) {
      this.onclose?.({
        code:
          error instanceof UampError && /** @type {any} */ (error).status === 401 ? REFUSED : LOST,
      });
      return;
    }
    this._socket.onopen = (event) => this.onopen?.(event);
    this._socket.onmessage = (event) => this.onmessage?.(event);
    this._socket.onclose = (event) => this.onclose?.(event);
    // `onclose` reports failures.
    this._socket.onerror = () => undefined;
  }
}

/**
 * Create the client of a user. Rejects with UampError if the key is refused.
 * @param {object} options
 * @param {string} options.url of the server, such as https://chat.example.org
 * @param {string} options.key an API key
 * @param {"auto"|"websocket"|"sse"} [options.transport] without a class of WebSockets it is sse
 * @param {any} [options.webSocket] the class of WebSockets; node has one since version 22
 * @returns {Promise<UampClient & {rest: Rest}>}
 */
export async function connect({ url, key, transport = "auto", webSocket = globalThis.WebSocket }) {
  const origin = url.replace(/\/+$/, "");
  const rest = new Rest(origin, key);
  const me = await rest.request("/api/v1/me");
  const ticket = () => rest.ticket();
  const socketUrl = `${origin.replace(/^http/, "ws")}/uamp`;
  const client = new UampClient({
    url: socketUrl,
    userId: String(me.id),
    outbox: new Outbox(new MemoryStorage(), String(me.id)),
    socket: () => new TicketSocket(socketUrl, ticket, webSocket),
    stream: () => new EventStreamSocket(ticket, { origin, headers: rest.headers }),
    transport: webSocket ? transport : "sse",
  });
  return Object.assign(client, { rest });
}

/**
 * @typedef {object} Piece the new part of an answer
 * @property {string} text the text added
 * @property {boolean} restarted whether the answer was restarted, and `text` replaces all of it
 * @property {import("./live-response.js").LiveResponse} response as it is now
 */

/**
 * Send a message and yield the new parts of its answers, until all have ended.
 * @param {import("./chat-session.js").ChatSession} chat
 * @param {string} text
 * @param {{answerMs?: number, beginMs?: number}} [bounds] how long an answer may be silent, and
 *   how long to wait for the first one
 * @returns {AsyncGenerator<Piece>} rejects with UampError if an answer fails or is cancelled, the
 *   message is refused, no answer arrives, or the log of the chat is replaced meanwhile
 */
export async function* ask(chat, text, { answerMs = ANSWER_MS, beginMs = BEGIN_MS } = {}) {
  /** @type {Map<string, string>} the text that was yielded, by response id */
  const shown = new Map();
  /** @type {Piece[]} */
  const pieces = [];
  /** @type {UampError|null} */
  let failure = null;
  let messageId = "";
  let running = 0;
  let wake = () => {};
  const turn = chat.send({ text });
  const request = turn.frames.at(-1)?.event_id;

  /** @param {any} event */
  const onMessage = ({ detail }) => {
    if (detail.message.client_event_id === request) messageId = detail.message.id;
  };
  /** @param {any} event */
  const onResponse = ({ detail: response }) => {
    if (!messageId || response.messageId !== messageId) return;
    const before = shown.get(response.id);
    if (before === undefined) running += 1;
    const now = textOf(response);
    const known = before ?? "";
    if (response.status !== "running") {
      running -= 1;
      if (response.status !== "completed") {
        failure ??= new UampError({
          code: response.error?.code || response.status,
          message: response.reason || response.error?.message,
        });
      }
    }
    shown.set(response.id, now);
    if (now.startsWith(known)) {
      if (now.length > known.length)
        pieces.push({ text: now.slice(known.length), restarted: false, response });
    } else if (known.startsWith(now)) shown.set(response.id, known);
    else pieces.push({ text: now, restarted: true, response });
    wake();
  };
  const onTurns = () => {
    if (turn.state === "failed")
      failure ??= new UampError({ code: "refused", message: turn.error });
    if (turn.state === "unknown")
      failure ??= new UampError({
        code: "outcome_unknown",
        message: "The message was sent, but its session has ended, so its outcome is unknown.",
      });
    wake();
  };
  const onReset = () => {
    if (shown.size && running === 0) return;
    if (turn.state === "waiting" || turn.state === "held") {
      // It is in no log yet.
      chat.retry(turn);
      return;
    }
    // What the new log has of the message is unknown: sending it again could repeat it.
    chat.discard(turn);
    failure ??= new UampError({
      code: "outcome_unknown",
      message: "The log of the chat was replaced, so the outcome of the message is unknown.",
    });
    wake();
  };
  /** @type {[string, (event: any) => void][]} */
  const listeners = [
    ["message", onMessage],
    ["response", onResponse],
    ["response-end", onResponse],
    ["turns", onTurns],
    ["reset", onReset],
  ];
  for (const [type, listener] of listeners) chat.addEventListener(type, listener);
  try {
    while (true) {
      const piece = pieces.shift();
      if (piece) yield piece;
      else if (failure) throw failure;
      else if (shown.size && running === 0) return;
      else await waitFor(shown.size ? answerMs : beginMs, (done) => (wake = done));
    }
  } finally {
    for (const [type, listener] of listeners) chat.removeEventListener(type, listener);
  }
}

/**
 * The text of an answer; for one whose deltas were all missed, from its end.
 * @param {import("./live-response.js").LiveResponse} response
 * @returns {string}
 */
function textOf(response) {
  return (
    response.output.map((item) => (item.type === "text" ? item.text : "")).join("") || response.text
  );
}

/** @param {number} ms @param {(done: () => void) => void} register */
function waitFor(ms, register) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new UampError({
            code: "timed_out",
            message: `No reply within ${ms / 1000} seconds; mention an agent of the chat.`,
          }),
        ),
      ms,
    );
    register(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
