/** The calls in this user's chats, and the one that this page is in. */

import { isApiError } from "../api.js";
import { CallAgents } from "./agents/call-agents.js";
import { Levels } from "./levels.js";
import { Mesh } from "./mesh.js";
import { MicrophoneError, closeMicrophone, openMicrophone } from "./microphone.js";
import { playSound, silence } from "./sounds.js";
import { gettext } from "../words.js";

const JOIN_MS = 12_000;
const READY_MS = 4_000;
const CHECK_MS = 20_000;

/**
 * @typedef {import("./types.js").Call} Call
 * @typedef {import("./types.js").Active} Active
 */

/** Events: `change`; `say` (detail: a text for the user). */
export class Calls extends EventTarget {
  /** @param {{client: any, store: any, api: any, me: {id: string}}} page */
  constructor({ client, store, api, me }) {
    super();
    this._client = client;
    this._store = store;
    this._api = api;
    this._me = me;
    /** @type {Map<string, Call>} ongoing calls, by chat id */
    this._calls = new Map();
    /** @type {Set<string>} ids of calls whose card was dismissed here */
    this._quiet = new Set();
    /**
     * @type {Set<string>} ids of calls that this page has left: late events about them concern no
     *   other call
     */
    this._left = new Set();
    /** @type {Active|null} */
    this.active = null;
    this._isStarting = false;
    client.addEventListener("call", (/** @type {CustomEvent} */ event) => this._take(event.detail));
    addEventListener("pagehide", () => this.leave());
    setInterval(() => this._check(), CHECK_MS);
  }

  /** @param {string} chatId @returns {Call|undefined} the ongoing call of the chat */
  of(chatId) {
    return this._calls.get(chatId);
  }

  /** The call that this page is in, according to the server. */
  get current() {
    return this.active ? this._calls.get(this.active.chatId) : undefined;
  }

  /** The calls that ring for this user, except in muted chats. @returns {Call[]} */
  get ringing() {
    const now = Date.now();
    return [...this._calls.values()].filter((call) => {
      const own = this._own(call);
      return (
        own?.state === "ringing" &&
        (own.rings_until ?? 0) > now &&
        !this._quiet.has(call.call_id) &&
        !this._store.get(call.chat_id)?.muted
      );
    });
  }

  /**
   * Start a call in a chat, or join the ongoing one.
   * @param {string} chatId
   * @param {string} [callId] join this call only, and start no other
   */
  async start(chatId, callId) {
    if (this._isStarting || this.active?.chatId === chatId) return;
    this._isStarting = true;
    try {
      this.leave();
      const stream = await openMicrophone();
      try {
        await this._connected(chatId);
        const found = await this._api.get(`/chats/${encodeURIComponent(chatId)}/call`);
        this._enter(
          chatId,
          stream,
          callId ? { ...found, call: { call_id: callId } } : found,
          !callId,
        );
      } catch (error) {
        closeMicrophone(stream);
        throw error;
      }
    } catch (/** @type {any} */ error) {
      if (!(error instanceof MicrophoneError) && !isApiError(error)) throw error;
      this._say(error.message);
    } finally {
      this._isStarting = false;
    }
  }

  /**
   * Wait a moment for the session of a chat: the page may show the chat before it is connected.
   * @param {string} chatId
   */
  _connected(chatId) {
    const session = this._session(chatId);
    if (!session || session.ready) return Promise.resolve();
    return new Promise((resolve) => {
      session.addEventListener("ready", resolve, { once: true });
      setTimeout(resolve, READY_MS);
    });
  }

  /** @param {Call} call */
  decline(call) {
    this._quiet.add(call.call_id);
    this._session(call.chat_id)?.call("voice.decline", { call_id: call.call_id });
    this._changed();
  }

  /** Leave the call. */
  leave() {
    const { active } = this;
    if (!active) return;
    if (active.callId) {
      this._left.add(active.callId);
      this._session(active.chatId)?.call("voice.end", { call_id: active.callId });
    }
    this._close();
  }

  /** @param {boolean} muted */
  mute(muted) {
    if (!this.active) return;
    this.active.muted = muted;
    for (const track of this.active.stream.getAudioTracks()) track.enabled = !muted;
    this._changed();
  }

  /** Use another microphone. @param {string} deviceId */
  async useMicrophone(deviceId) {
    const { active } = this;
    if (!active) return;
    try {
      const stream = await openMicrophone(deviceId);
      if (this.active !== active) {
        closeMicrophone(stream);
        return;
      }
      closeMicrophone(active.stream);
      Object.assign(active, { stream, deviceId });
      await active.mesh.replace(stream);
      active.levels.watch(this._me.id, stream);
      active.agents.remix();
      this.mute(active.muted);
    } catch (error) {
      if (!(error instanceof MicrophoneError)) throw error;
      this._say(error.message);
    }
  }

  /**
   * The state of the connection to a participant: "connected" or "failed"; anything else means
   * connecting.
   * @param {string} userId
   */
  connectionTo(userId) {
    return this.active?.mesh.peers.get(userId)?.state ?? "new";
  }

  /**
   * @param {string} chatId
   * @param {MediaStream} stream
   * @param {{call: {call_id: string}|null, ice_servers: RTCIceServer[], speech_seconds: number}}
   *   found
   * @param {boolean} mayBegin whether to start a new call if this one has ended
   */
  _enter(chatId, stream, { call, ice_servers: servers, speech_seconds: mostSeconds }, mayBegin) {
    const session = this._session(chatId);
    const sent = call
      ? session?.call("voice.accept", { call_id: call.call_id })
      : session?.call("voice.invite", { media: ["audio"] });
    if (!sent) {
      closeMicrophone(stream);
      this._say(gettext("You're offline. Call again when you're back online."));
      return;
    }
    const mesh = new Mesh({
      userId: this._me.id,
      servers,
      stream,
      send: (to, fields) => this._signal(to, fields),
    });
    const levels = new Levels(() => this._changed());
    const gone = new AbortController();
    const active = /** @type {Active} */ ({
      chatId,
      callId: call?.call_id ?? "",
      joined: false,
      muted: false,
      deviceId: "",
      stream,
      mesh,
      levels,
      sounds: new Map(),
      gone,
      mayBegin,
      timer: window.setTimeout(
        () => this._lost(gettext("The server didn't respond. Call again.")),
        JOIN_MS,
      ),
    });
    active.agents = new CallAgents(active, {
      session,
      meId: this._me.id,
      mostSeconds,
      changed: () => this._changed(),
      say: (text) => this._say(text),
    });
    this.active = active;
    levels.watch(this._me.id, stream);
    mesh.addEventListener("stream", (/** @type {any} */ { detail }) => this._play(detail));
    mesh.addEventListener("agents", (/** @type {any} */ { detail }) => this._playAgents(detail));
    mesh.addEventListener("gone", (/** @type {any} */ { detail }) => this._silence(detail.userId));
    mesh.addEventListener("change", () => this._changed());
    session.addEventListener(
      "call-error",
      (/** @type {CustomEvent} */ { detail }) => this._refused(detail),
      { signal: gone.signal },
    );
    if (call) this._quiet.add(call.call_id);
    this._changed();
  }

  /**
   * If another user started a call at the same time, join theirs. If the call ended before it was
   * joined, start another.
   * @param {any} error
   */
  _refused(error) {
    const { active } = this;
    if (!active) return;
    const callId = error.details?.call_id;
    if (active.joined) active.agents.refused(error);
    else if (error.code === "call_running" && callId) {
      active.callId = callId;
      this._session(active.chatId)?.call("voice.accept", { call_id: callId });
    } else if (error.code === "call_not_found" && active.callId && active.mayBegin) {
      active.callId = "";
      this._session(active.chatId)?.call("voice.invite", { media: ["audio"] });
    } else this._lost(error.message);
  }

  /**
   * @param {any} event call.updated, call.signal, call.agent_state, call.ended, voice.end or
   *   voice.decline
   */
  _take(event) {
    const { active } = this;
    if (event.type === "call.signal") {
      if (active?.callId === event.call_id) active?.mesh.receive(event);
    } else if (event.type === "call.agent_state") {
      if (active?.callId === event.call_id) active?.agents.take(event);
    } else if (event.type === "call.updated") this._update(event);
    else if (event.type === "call.ended") {
      if (this._calls.get(event.chat_id)?.call_id === event.call_id)
        this._over(event.chat_id, event.call_id);
    } else if (event.type === "voice.end" && event.reason === "elsewhere") {
      if (active?.callId === event.call_id)
        this._lost(gettext("You moved this call to another tab or device."));
    } else if (event.type === "voice.decline" && !event.from && active?.chatId === event.chat_id) {
      this._lost(gettext("There's no one in this chat to call."));
    }
  }

  /** @param {Call} call */
  _update(call) {
    const known = this._calls.get(call.chat_id);
    if (known?.call_id === call.call_id && known.revision >= call.revision) return;
    if (call.state === "ended") {
      if (!known || known.call_id === call.call_id) this._over(call.chat_id, call.call_id);
      return;
    }
    this._calls.set(call.chat_id, call);
    if (this.active?.chatId === call.chat_id) this._follow(call);
    this._changed();
  }

  /** The call that this page is in changed. @param {Call} call */
  _follow(call) {
    const { active } = this;
    if (!active || (this._left.has(call.call_id) && active.callId !== call.call_id)) return;
    const isIn = this._own(call)?.state === "joined";
    if (!isIn && active.joined) {
      this._lost(
        gettext("The connection was lost for too long, and you left the call. Call again."),
      );
      return;
    }
    if (!isIn) return;
    clearTimeout(active.timer);
    Object.assign(active, { joined: true, callId: call.call_id });
    const others = call.members.filter(
      (member) => member.state === "joined" && member.user_id !== this._me.id,
    );
    active.mesh.update(/** @type {any} */ (others));
    active.agents.follow(call);
  }

  /**
   * A call ended. An attempt to join it continues, because its refusal starts another call.
   * @param {string} chatId @param {string} callId
   */
  _over(chatId, callId) {
    this._calls.delete(chatId);
    const { active } = this;
    const isIn = active?.chatId === chatId && active.callId === callId;
    if (isIn && (active.joined || !active.mayBegin)) this._close();
    this._changed();
  }

  /** Refetch calls, since updates may have been missed. */
  async _check() {
    for (const { chat_id: chatId, call_id: callId } of [...this._calls.values()]) {
      try {
        const { call } = await this._api.get(`/chats/${encodeURIComponent(chatId)}/call`);
        if (call) this._update(call);
        else if (this._calls.get(chatId)?.call_id === callId) this._over(chatId, callId);
      } catch (error) {
        if (!isApiError(error)) throw error;
        if (error.status === 404) this._over(chatId, callId);
      }
    }
  }

  /** @param {{userId: string, stream: MediaStream}} peer */
  _play({ userId, stream }) {
    if (this.active) playSound(this.active.sounds, userId, stream);
    this.active?.levels.watch(userId, stream);
    this._changed();
  }

  /** @param {{userId: string, agents: MediaStream}} peer */
  _playAgents({ userId, agents }) {
    if (this.active) playSound(this.active.sounds, `agents ${userId}`, agents);
  }

  /** @param {string} userId */
  _silence(userId) {
    if (this.active) silence(this.active.sounds, userId);
    this.active?.levels.forget(userId);
  }

  /** The page dropped out of the call; say why. @param {string} text */
  _lost(text) {
    this._close();
    this._say(text);
  }

  _close() {
    const { active } = this;
    if (!active) return;
    clearTimeout(active.timer);
    active.gone.abort();
    active.agents.close();
    active.mesh.close();
    active.levels.close();
    closeMicrophone(active.stream);
    this.active = null;
    this._changed();
  }

  /** @param {string} to @param {object} fields */
  _signal(to, fields) {
    const { active } = this;
    if (active)
      this._session(active.chatId)?.call("call.signal", { call_id: active.callId, to, ...fields });
  }

  /** @param {Call} call */
  _own(call) {
    return call.members.find((member) => member.user_id === this._me.id);
  }

  /** @param {string} chatId */
  _session(chatId) {
    const chat = this._store.get(chatId);
    return chat ? this._store.session(chat) : undefined;
  }

  /** @param {string} text */
  _say(text) {
    this.dispatchEvent(new CustomEvent("say", { detail: text }));
  }

  _changed() {
    this.dispatchEvent(new Event("change"));
  }
}
