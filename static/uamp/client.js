/**
 * A UAMP 1.0 client for web pages: one socket, one session per chat (UAMP §10). It knows no DOM.
 *
 * Any page of this server can use it:
 *
 *   import { UampClient } from "/static/uamp/client.js";
 *   const client = new UampClient({ userId: "7" });
 *   const chat = client.open("chat_…");
 *   chat.addEventListener("message", (e) => console.log(e.detail.message.content));
 *   chat.send({ text: "@echo hello" });
 *
 * The client connects and reconnects automatically, resumes each chat after the last event that it
 * has, and resends unacknowledged turns under the same ids, even after a reload. If no WebSocket
 * ever opens, it falls back to HTTP with server-sent events, provided that `ticket` is given.
 */

import { ChatSession } from "./chat-session.js";
import { EventStreamSocket } from "./event-stream.js";
import { newId } from "./ids.js";
import { Outbox } from "./outbox.js";

const PING_MS = 25_000;
const PONG_MS = 8_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;
/** The close code of a stopping server: messages wait until it, or another one, is available. */
const RESTART = 1012;
/** Close codes after which retrying is pointless: sign in first, or load a newer page. */
const FINAL_CLOSE_CODES = new Set([4401, 4403, 4426]);

/** After this many attempts without an open WebSocket, HTTP is tried alternately. */
const ATTEMPTS_BEFORE_HTTP = 2;

/** An error that the server reported, with its code (UAMP §6.3, §6.8). */
export class UampError extends Error {
  /** @param {import("./types.js").ErrorBody} error */
  constructor(error) {
    super(error.message || error.code || "The server reported an error.");
    this.name = "UampError";
    this.code = error.code || "unknown";
    this.details = error.details || {};
  }
}

/**
 * The part of the WebSocket interface that the client uses; a program may pass a substitute.
 * @typedef {object} Socket
 * @property {number} readyState
 * @property {((event: any) => void)|null} onopen
 * @property {((message: any) => void)|null} onmessage
 * @property {((close: any) => void)|null} onclose
 * @property {(text: string) => void} send
 * @property {(code?: number) => void} close
 *
 * @typedef {object} ConnectionState
 * @property {"connecting"|"open"|"waiting"|"offline"|"refused"|"closed"} phase
 * @property {number} attempt how many attempts failed since the last open connection
 * @property {number} retryAt when the next attempt starts (Unix ms), 0 when none is planned
 * @property {number} [lostAt] when the connection was lost (Unix ms); 0 while there is one, and
 *   before the first
 * @property {"websocket"|"sse"} [transport] of the current or next connection
 * @property {boolean} [isRestart] whether the server, when last connected, announced that it
 *   stops
 */

/**
 * Events: `state` (detail: ConnectionState), `error` (detail: UampError that belongs to no chat),
 * `presence` (detail: a presence.online or presence.offline frame), `call` (detail: a frame of a
 * call), and of a watching client: `watched` (load the list of chats now), `activity` (detail: a
 * chat.activity frame), `read` (detail: the user's own message.read frame in a watched chat),
 * `person` (detail: a person.changed frame), `profile` (detail: a profile.changed frame).
 */
export class UampClient extends EventTarget {
  /**
   * @param {object} [options]
   * @param {string} [options.url] of the socket; default `/uamp` on this page's host
   * @param {string} [options.userId] own id: distinguishes own messages from those of others
   * @param {Outbox} [options.outbox] keeps unacknowledged turns; by default for as long as the tab,
   *   over reloads
   * @param {Storage} [options.storage] where the default outbox keeps them
   * @param {() => Promise<string>} [options.ticket] asks for a ticket (`POST /api/v1/tickets`)
   * @param {() => Socket} [options.socket] makes a socket; by default a WebSocket to `url`
   * @param {() => EventStreamSocket} [options.stream] makes a socket over HTTP; by default one of
   *   this page, if there is `ticket`
   * @param {"auto"|"websocket"|"sse"} [options.transport] by default HTTP is tried where no
   *   WebSocket opens
   */
  constructor({
    url,
    userId = "",
    storage = globalThis.sessionStorage,
    outbox = new Outbox(storage, userId),
    ticket,
    socket,
    stream,
    transport = "auto",
  } = {}) {
    super();
    this._makeSocket = socket ?? (() => new WebSocket(this.url));
    this._makeStream = stream ?? (ticket && (() => new EventStreamSocket(ticket)));
    this._choice = transport;
    /** Whether a WebSocket was ever open; if so, HTTP is not tried. */
    this._hadSocket = false;
    /** @type {"websocket"|"sse"} */
    this._transport = "websocket";
    this.url = url || `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/uamp`;
    this.userId = userId;
    this.outbox = outbox;
    /** @type {Map<string, ChatSession>} by chat id */
    this.chats = new Map();
    this._watches = false;
    this._isRestart = false;
    this._wasOpen = false;
    /** @type {ConnectionState} */
    this.state = { phase: "closed", attempt: 0, retryAt: 0 };
    /** @type {Socket|EventStreamSocket|null} */
    this._socket = null;
    /** @type {Record<"retry"|"ping"|"pong", any>} */
    this._timers = { retry: 0, ping: 0, pong: 0 };
    globalThis.addEventListener?.("online", () => this.retryNow());
    globalThis.addEventListener?.("offline", () => this._wentOffline());
  }

  /**
   * Open a chat, or return the open one. Connects when there is no connection yet.
   * @param {string} chatId
   * @param {{epoch?: string, after?: number}} [from] the last event that the page has; without it
   *   only new events are received
   * @returns {ChatSession}
   */
  open(chatId, from) {
    let chat = this.chats.get(chatId);
    if (!chat) {
      chat = new ChatSession(this, chatId, from);
      this.chats.set(chatId, chat);
      if (this.state.phase === "open") chat.start();
      else this.connect();
    } else if (chat.isSuspended && this.state.phase === "open") chat.start();
    return chat;
  }

  /**
   * Receive summaries of the events in all of the user's chats, from now on and after each
   * reconnect.
   */
  watch() {
    this._watches = true;
    if (!this.transmit({ type: "chats.watch" })) this.connect();
  }

  /** Connect now, unless a connection is open or being made. */
  connect() {
    if (this._socket || this.state.phase === "refused") return;
    clearTimeout(this._timers.retry);
    const { attempt } = this.state;
    // An unreachable server accepts neither: alternate between both.
    const isTurn =
      this._choice === "auto" &&
      !this._hadSocket &&
      attempt >= ATTEMPTS_BEFORE_HTTP &&
      attempt % 2 === 0;
    const stream = this._choice === "sse" || isTurn ? this._makeStream?.() : undefined;
    this._transport = stream ? "sse" : "websocket";
    this._setState("connecting", attempt);
    const socket = stream ?? this._makeSocket();
    this._socket = socket;
    socket.onopen = () => this._opened();
    socket.onmessage = (/** @type {{data: string}} */ message) => this._received(message.data);
    socket.onclose = (/** @type {{code: number}} */ close) => this._closed(socket, close.code);
    if (socket instanceof EventStreamSocket) socket.onsuspend = (id) => this._suspended(id);
  }

  /** @param {string} sessionId */
  _suspended(sessionId) {
    for (const chat of this.chats.values()) if (chat.sessionId === sessionId) chat.suspend();
  }

  /** Retry at once instead of waiting for the next attempt. */
  retryNow() {
    if (["waiting", "offline"].includes(this.state.phase)) this.connect();
  }

  /** Stop trying: the page knows that the server will not accept this user. */
  refuse() {
    this._end("refused");
  }

  /** Close for good, for example before signing out. */
  close() {
    this._end("closed");
  }

  /**
   * Send one frame if the connection is open; returns whether it was handed to the socket.
   * @param {import("./types.js").Frame} frame without event_id unless the caller needs to know it
   * @returns {boolean}
   */
  transmit(frame) {
    if (this.state.phase !== "open" || this._socket?.readyState !== 1) return false;
    this._socket.send(JSON.stringify({ event_id: newId(), ...frame }));
    return true;
  }

  /** Forget a chat; its session is ended (UAMP §10.2). @param {string} chatId */
  leave(chatId) {
    const chat = this.chats.get(chatId);
    if (!chat) return;
    this.chats.delete(chatId);
    if (chat.sessionId) this.transmit({ type: "session.end", session_id: chat.sessionId });
    chat.lost();
  }

  /** @param {"refused"|"closed"} phase */
  _end(phase) {
    this._stopTimers();
    const socket = this._socket;
    this._socket = null;
    socket?.close(1000);
    for (const chat of this.chats.values()) chat.lost();
    this._setState(phase, 0);
  }

  _opened() {
    this._isRestart = false;
    this._wasOpen = true;
    this._hadSocket ||= this._transport === "websocket";
    this._setState("open", 0);
    this._timers.ping = setInterval(() => this._ping(PONG_MS), PING_MS);
    for (const chat of this.chats.values()) chat.start();
    if (this._watches) this.transmit({ type: "chats.watch" });
  }

  /** @param {Socket|EventStreamSocket} socket @param {number} code */
  _closed(socket, code) {
    if (socket !== this._socket) return;
    this._stopTimers();
    this._socket = null;
    if (code === RESTART) this._isRestart = true;
    for (const chat of this.chats.values()) chat.lost();
    if (FINAL_CLOSE_CODES.has(code)) {
      this._setState("refused", this.state.attempt);
      return;
    }
    const attempt = this.state.attempt + 1;
    if (globalThis.navigator?.onLine === false) {
      this._setState("offline", attempt);
      return;
    }
    const limit = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
    // Half of the delay is random, so that not all clients reconnect to a restarted server at once.
    const delay = limit / 2 + (Math.random() * limit) / 2;
    this._timers.retry = setTimeout(() => this.connect(), delay);
    this._setState("waiting", attempt, Date.now() + delay);
  }

  _wentOffline() {
    if (this.state.phase === "waiting") {
      clearTimeout(this._timers.retry);
      this._setState("offline", this.state.attempt);
    } else if (this.state.phase === "open") {
      this._ping(PONG_MS / 4); // A server on this machine is still there.
    }
  }

  /** @param {number} patience ms until the connection counts as dead */
  _ping(patience) {
    const socket = this._socket;
    if (!socket || !this.transmit({ type: "ping" })) return;
    clearTimeout(this._timers.pong);
    this._timers.pong = setTimeout(() => {
      // A dead connection may take minutes to close: abandon it here.
      socket.onclose = null;
      socket.close();
      this._closed(socket, 1006);
    }, patience);
  }

  /** @param {string} data */
  _received(data) {
    clearTimeout(this._timers.pong);
    const event = JSON.parse(data);
    if (event.type === "pong") return;
    if (event.type.startsWith("presence.o")) this._emit("presence", event);
    if (event.type.startsWith("call.") || event.type.startsWith("voice."))
      this._emit("call", event);
    if (event.type.startsWith("payment.")) this._emit("payment", event);
    if (event.type === "chats.watched") this._emit("watched", event);
    if (event.type === "chat.activity") this._emit("activity", event);
    if (event.type === "person.changed") this._emit("person", event);
    if (event.type === "profile.changed") this._emit("profile", event);
    if (event.type === "message.read" && !event.session_id) this._emit("read", event);
    const chat = this._chatOf(event);
    if (chat) chat.receive(event);
    else if (event.error) this._emit("error", new UampError(event.error));
  }

  /** @param {import("./types.js").Frame} event */
  _chatOf(event) {
    const cause = event.error?.details?.event_id;
    for (const chat of this.chats.values()) {
      if (event.type === "session.created" ? event.chat === chat.chatId : false) return chat;
      if (event.session_id && event.session_id === chat.sessionId) return chat;
      if (cause && chat.sentEvent(cause)) return chat;
    }
    return null;
  }

  _stopTimers() {
    clearInterval(this._timers.ping);
    clearTimeout(this._timers.pong);
    clearTimeout(this._timers.retry);
  }

  /** @param {ConnectionState["phase"]} phase @param {number} attempt */
  _setState(phase, attempt, retryAt = 0) {
    const lostAt = phase === "open" || !this._wasOpen ? 0 : this.state.lostAt || Date.now();
    this.state = {
      phase,
      attempt,
      retryAt,
      lostAt,
      transport: this._transport,
      isRestart: this._isRestart,
    };
    this._emit("state", this.state);
  }

  /** @param {string} type @param {any} detail */
  _emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
