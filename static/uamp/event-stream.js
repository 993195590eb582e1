/**
 * UAMP over HTTP with server-sent events (UAMP §13.2), with the interface of a WebSocket: for
 * networks that block WebSockets. Each frame is a POST to `/events`, one after another; each
 * session has its own stream.
 */

/**
 * The maximum number of open streams: over HTTP/1.1, all tabs of a browser share six connections to
 * a host.
 */
const STREAMS = 2;
/** How often to reload the list of chats, which has no stream. */
const LIST_MS = 10_000;
/** A stream that is silent for this long is dead; the server sends keep-alives more often. */
const SILENCE_MS = 60_000;
/** How long the server may take to answer a request, including the time to send a large frame. */
const ANSWER_MS = 120_000;
/** How many event ids of direct answers to remember: the stream repeats these answers. */
const REMEMBERED = 256;
const SIGNED_OUT = 4401;
const LOST = 1006;

/** @typedef {import("./types.js").Frame} Frame */

/**
 * Parses a text/event-stream that arrives in pieces.
 * @param {(data: string) => void} receive called with the data of each event
 * @returns {(piece: string) => void}
 */
export function eventParser(receive) {
  let rest = "";
  return (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    // The server puts the data of an event on one line.
    for (const line of lines) if (line.startsWith("data: ")) receive(line.slice(6));
  };
}

/** The request for the stream of a session, from asking for its ticket until it is aborted. */
class StreamRequest extends AbortController {
  /** @param {() => void} silent called when the server has sent nothing for too long */
  constructor(silent) {
    super();
    this._silent = silent;
    this._timer = /** @type {any} */ (0);
    this.renew();
  }

  /** Start the time limit again: the server sent something. */
  renew() {
    clearTimeout(this._timer);
    if (!this.signal.aborted) this._timer = setTimeout(this._silent, SILENCE_MS);
  }

  /** @override */
  abort() {
    clearTimeout(this._timer);
    super.abort();
  }
}

export class EventStreamSocket {
  /**
   * @param {() => Promise<string>} ticket asks the server for a ticket; rejects where it is not
   *   reached, with `status` where it refuses
   * @param {{origin?: string, headers?: Record<string, string>}} [server] its origin, and the
   *   headers of a program without cookies; by default the page's server
   */
  constructor(ticket, { origin = "", headers = {} } = {}) {
    this._origin = origin;
    this._headers = headers;
    this.readyState = 0;
    /** @type {() => void} */
    this.onopen = () => undefined;
    /** @type {(message: {data: string}) => void} */
    this.onmessage = () => undefined;
    /** @type {((close: {code: number}) => void)|null} */
    this.onclose = null;
    /**
     * Called when a session lost its stream to sessions opened later.
     * @type {(sessionId: string) => void}
     */
    this.onsuspend = () => undefined;
    this._ticket = ticket;
    this._over = new AbortController();
    /** @type {Map<string, StreamRequest>} by session id, the oldest first */
    this._streams = new Map();
    /** @type {Set<string>} event ids */
    this._answered = new Set();
    /** @type {Promise<void>} Frames are sent in the order in which they were given. */
    this._last = Promise.resolve();
    this._listTimer = 0;
    this._open();
  }

  /** Send a frame. @param {string} text */
  send(text) {
    const frame = /** @type {Frame} */ (JSON.parse(text));
    if (frame.type === "chats.watch") this._watch();
    else
      this._last = this._last
        .then(() => (this.readyState === 1 ? this._post(frame) : undefined))
        .catch((error) => this._fail(error));
  }

  /** @param {number} [code] */
  close(code = 1000) {
    if (this.readyState === 3) return;
    this.readyState = 3;
    clearInterval(this._listTimer);
    this._over.abort();
    for (const stream of this._streams.values()) stream.abort();
    this._streams.clear();
    this.onclose?.({ code });
  }

  /** Only a reachable server issues a ticket, and only to signed-in users. */
  async _open() {
    try {
      await this._inTime(this._ticket());
      if (this.readyState !== 0) return;
      this.readyState = 1;
      this.onopen();
    } catch (error) {
      this._fail(error);
    }
  }

  /**
   * Wait for an answer; the connection counts as lost if it takes too long.
   * @template T
   * @param {Promise<T>} answer
   * @returns {Promise<T>}
   */
  async _inTime(answer) {
    const timer = setTimeout(() => this._fail({ status: 0 }), ANSWER_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {any} error */
  _fail(error) {
    if (this.readyState === 3) return;
    this.close(error?.status === 401 || error?.status === 403 ? SIGNED_OUT : LOST);
  }

  /** Request the list now, and again from time to time. */
  _watch() {
    clearInterval(this._listTimer);
    const read = () => this._deliver({ type: "chats.watched" });
    this._listTimer = /** @type {any} */ (
      setInterval(() => globalThis.document?.hidden || read(), LIST_MS)
    );
    setTimeout(read);
  }

  /** @param {Frame} frame */
  async _post(frame) {
    const answer = await this._inTime(
      fetch(`${this._origin}/events`, {
        method: "POST",
        body: JSON.stringify(frame),
        credentials: "same-origin",
        // Another server would receive the frame, with its tokens.
        redirect: "error",
        signal: this._over.signal,
        headers: {
          "Content-Type": "application/json",
          ...this._headers,
          ...(frame.session_id ? { "X-Session-ID": frame.session_id } : {}),
        },
      }),
    );
    if (answer.status === 401) {
      this._fail({ status: 401 });
      return;
    }
    const body = await this._inTime(answer.json());
    if (answer.ok) {
      for (const event of body.events) {
        this._remember(event.event_id);
        this._deliver(event);
      }
      if (frame.type === "session.create") await this._follow(body.session_id, frame.resume);
      if (frame.type === "session.end") this._leave(frame.session_id ?? "");
    } else if (body.event) this._deliver(body.event);
    else this._fail({ status: answer.status });
  }

  /** @param {string} eventId */
  _remember(eventId) {
    if (!eventId) return;
    this._answered.add(eventId);
    if (this._answered.size > REMEMBERED)
      this._answered.delete(/** @type {string} */ (this._answered.values().next().value));
  }

  /** @param {object} event */
  _deliver(event) {
    if (this.readyState === 1) this.onmessage({ data: JSON.stringify(event) });
  }

  /** @param {string} sessionId */
  _leave(sessionId) {
    this._streams.get(sessionId)?.abort();
    this._streams.delete(sessionId);
  }

  /**
   * Open the stream of a session; later frames wait until it is open.
   * @param {string} sessionId @param {{epoch: string, after: number}|undefined} resume
   */
  async _follow(sessionId, resume) {
    this._leave(sessionId);
    for (const oldest of Array.from(this._streams.keys()).slice(
      0,
      Math.max(0, this._streams.size - STREAMS + 1),
    )) {
      this._leave(oldest);
      this.onsuspend(oldest);
    }
    const request = new StreamRequest(() => this._fail({ status: 0 }));
    this._streams.set(sessionId, request);
    const query = new URLSearchParams({ session_id: sessionId, ticket: await this._ticket() });
    const answer = await fetch(`${this._origin}/events/stream?${query}`, {
      signal: request.signal,
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
      headers: resume ? { "Last-Event-ID": `${resume.epoch}:${resume.after}` } : {},
    });
    if (!answer.ok || !answer.body) {
      this._fail({ status: answer.status === 401 ? 401 : 0 });
      return;
    }
    this._read(answer.body.getReader(), sessionId, request);
  }

  /**
   * @param {ReadableStreamDefaultReader<Uint8Array>} reader
   * @param {string} sessionId
   * @param {StreamRequest} request
   */
  async _read(reader, sessionId, request) {
    const parse = eventParser((data) => {
      const event = JSON.parse(data);
      if (!this._answered.has(event.event_id)) this._deliver(event);
    });
    const decoder = new TextDecoder();
    try {
      for (;;) {
        request.renew();
        const { value, done } = await reader.read();
        if (done) break;
        parse(decoder.decode(value, { stream: true }));
      }
    } catch (error) {
      if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error;
    }
    // The server or the network ended it: all sessions resume over a new connection.
    if (this._streams.get(sessionId) === request) this._fail({ status: 0 });
  }
}
