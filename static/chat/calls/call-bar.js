/**
 * The bar above the chats during a call and while one rings. It pushes the page down, and covers
 * nothing.
 */

import { calls, me, store } from "../context.js";
import { announce } from "../dom.js";
import { View, face, glyph } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import "./agents/agents-row.js";
import { Ring, ringsAloud, setRingsAloud } from "./ring.js";
import { gettext, interpolate } from "../words.js";

const NOTE_MS = 9_000;
const two = (/** @type {number} */ value) => String(value).padStart(2, "0");

/** @param {number} ms @returns {string} "4:07" or "1:04:07" */
function clock(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours
    ? `${hours}:${two(minutes)}:${two(seconds % 60)}`
    : `${minutes}:${two(seconds % 60)}`;
}

/** Whether a key is typed into a text field. @param {KeyboardEvent} event */
function isWriting(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return (
    event.isComposing ||
    target.isContentEditable ||
    Boolean(target.closest?.("input, textarea, select"))
  );
}

class CallBar extends View {
  static properties = {
    _note: { state: true },
    _devices: { state: true },
  };

  constructor() {
    super();
    this._note = "";
    /** @type {MediaDeviceInfo[]} microphones to choose from */
    this._devices = [];
    this._ring = new Ring();
    /** @type {Set<string>} calls whose ringing was announced */
    this._announced = new Set();
    /** Whether one of its buttons, or the call button, had the focus. */
    this._hasFocus = false;
    /** The selector of the element to focus when no button is left. */
    this._after = "";
  }

  connectedCallback() {
    super.connectedCallback();
    calls.addEventListener("change", () => this._changed());
    calls.addEventListener("say", (/** @type {any} */ { detail }) => this._say(detail));
    addEventListener("keydown", (event) => this._key(event));
    setInterval(() => this._tick(), 1000);
  }

  willUpdate() {
    this._hasFocus ||= this.contains(document.activeElement);
    if (calls.active || calls.ringing.length)
      this._after = calls.active ? ".call-button" : "chat-view textarea";
  }

  /** The pressed button may be gone: move the focus to the call that began, or out of the bar. */
  updated() {
    const hadFocus = this._hasFocus;
    this._hasFocus = false;
    if (!hadFocus || this.contains(document.activeElement)) return;
    const place = (/** @type {ParentNode} */ within, /** @type {string} */ selector) =>
      /** @type {HTMLElement|null} */ (within.querySelector(selector));
    const left = place(this, calls.active ? ".call-mute" : ".call-decline");
    if (left) left.focus();
    // The head of the chat is re-rendered, too.
    else requestAnimationFrame(() => place(document, this._after)?.focus());
  }

  render() {
    const { active, ringing } = calls;
    return html`${active ? this._active(active) : nothing}${
      active ? html`<agents-row></agents-row>` : nothing
    }${repeat(
      ringing,
      ({ call_id: id }) => id,
      (call) => this._ringing(call),
    )}
      <p class="call-note" role="status" ?hidden=${!this._note}>${this._note}</p>`;
  }

  /** @param {import("./types.js").Call} call */
  _ringing(call) {
    const who = this._nameOf(call);
    const chat = store.get(call.chat_id);
    const isAloud = ringsAloud();
    return html`<section
      class="call-row is-ringing"
      aria-label=${interpolate(gettext("%(name)s is calling"), { name: who })}
      data-testid="ringing"
    >
      <span class="call-faces">${face(who, "user")}</span>
      <div class="call-text">
        <b dir="auto">${interpolate(gettext("%(name)s is calling"), { name: who })}</b
        ><small>${chat ? store.nameOf(chat) : ""}</small>
      </div>
      <button
        type="button"
        class="icon-button"
        aria-pressed=${String(isAloud)}
        aria-label=${gettext("Play a ringtone")}
        title=${gettext("Play a ringtone on this device")}
        @click=${() => this._ringAloud(!isAloud)}
      >
        ${glyph("bell")}
      </button>
      <button
        type="button"
        class="button call-decline"
        data-testid="decline"
        @click=${() => calls.decline(call)}
      >
        ${gettext("Decline")}
      </button>
      <button
        type="button"
        class="button button-primary"
        data-testid="accept"
        @click=${() => calls.start(call.chat_id, call.call_id)}
      >
        ${glyph("phone")}${gettext("Accept")}
      </button>
    </section>`;
  }

  /** @param {import("./types.js").Active} active */
  _active(active) {
    const call = calls.current;
    const chat = store.get(active.chatId);
    const members = (call?.members ?? []).filter(
      ({ state }) => state === "joined" || state === "ringing",
    );
    const title = chat ? store.nameOf(chat) : gettext("Call");
    const mute = active.muted ? gettext("Unmute") : gettext("Mute");
    return html`<section
      class="call-row"
      aria-label=${interpolate(gettext("Call in %(title)s"), { title })}
      data-testid="call-panel"
    >
      <ul class="call-faces" aria-label=${gettext("In the call")}>
        ${members.map((member) => this._member(member))}
      </ul>
      <div class="call-text">
        <b dir="auto">${title}</b><small data-testid="call-status">${this._status(call)}</small>
      </div>
      ${
        this._devices.length > 1
          ? html`<select
              class="field call-device"
              aria-label=${gettext("Microphone")}
              @change=${(/** @type {any} */ { target }) => calls.useMicrophone(target.value)}
            >
              ${this._devices.map(
                ({ deviceId, label }, at) =>
                  html`<option value=${deviceId} ?selected=${deviceId === active.deviceId}>
                    ${label || interpolate(gettext("Microphone %(n)s"), { n: at + 1 })}
                  </option>`,
              )}
            </select>`
          : nothing
      }
      <button
        type="button"
        class="icon-button call-mute"
        aria-pressed=${String(active.muted)}
        aria-label=${gettext("Mute")}
        title="${mute} (M)"
        aria-keyshortcuts="M"
        data-testid="mute"
        @click=${() => this._mute()}
      >
        ${glyph(active.muted ? "microphoneOff" : "microphone")}
      </button>
      <button
        type="button"
        class="button call-leave"
        data-testid="leave"
        @click=${() => this._leave()}
      >
        ${glyph("hangUp")}${gettext("Leave")}
      </button>
    </section>`;
  }

  /** @param {import("./types.js").Member} member */
  _member({ user_id: id, username, state }) {
    const { active } = calls;
    const isSpeaking = active?.levels.speaking.has(id) && !(id === me.id && active.muted);
    const connection = id === me.id ? "connected" : calls.connectionTo(id);
    const how = {
      ringing: gettext("is being called"),
      joined: isSpeaking
        ? gettext("speaking")
        : connection === "connected"
          ? ""
          : connection === "failed"
            ? gettext("can't be reached")
            : gettext("is connecting"),
    }[state];
    return html`<li
      class="call-member is-${state} ${isSpeaking ? "is-speaking" : ""} is-${connection}"
      data-name=${username}
      title="${username}${how ? ` ${how}` : ""}"
    >
      ${face(username, "user")}<span class="visually-hidden"
        >${id === me.id ? gettext("You") : username}${how ? ` (${how})` : ""}</span
      >
    </li>`;
  }

  /** @param {import("./types.js").Call|undefined} call */
  _status(call) {
    if (!call || !calls.active?.joined) return gettext("Connecting…");
    if (call.state === "ringing") return gettext("Ringing…");
    const others = call.members.filter(
      ({ user_id: id, state }) => state === "joined" && id !== me.id,
    );
    const unreached = others
      .filter(({ user_id: id }) => calls.connectionTo(id) === "failed")
      .map(({ username }) => username);
    const time = clock(Date.now() - (call.answered_at ?? call.started_at));
    if (unreached.length)
      return interpolate(
        gettext("%(time)s · No sound to or from %(names)s: your networks can't reach each other"),
        { time, names: unreached.join(", ") },
      );
    if (!others.length && !calls.active.agents.joined.length)
      return interpolate(gettext("%(time)s · No one else is here now"), { time });
    return calls.active.muted ? interpolate(gettext("%(time)s · You are muted"), { time }) : time;
  }

  /** @param {import("./types.js").Call} call */
  _nameOf(call) {
    return (
      call.members.find(({ user_id: id }) => id === call.started_by)?.username ??
      gettext("A member")
    );
  }

  _mute() {
    const { active } = calls;
    if (!active) return;
    calls.mute(!active.muted);
    announce(active.muted ? gettext("Muted") : gettext("Not muted"));
  }

  _leave() {
    calls.leave();
    announce(gettext("You left the call"));
  }

  /** @param {boolean} isOn */
  _ringAloud(isOn) {
    setRingsAloud(isOn);
    this._changed();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (
      event.key.toLowerCase() !== "m" ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.repeat ||
      event.defaultPrevented ||
      !calls.active ||
      isWriting(event)
    )
      return;
    event.preventDefault();
    this._mute();
  }

  _changed() {
    const { ringing } = calls;
    for (const call of ringing) {
      if (this._announced.has(call.call_id)) continue;
      this._announced.add(call.call_id);
      announce(interpolate(gettext("%(name)s is calling"), { name: this._nameOf(call) }));
    }
    if (ringing.length && ringsAloud() && !calls.active) this._ring.start();
    else this._ring.stop();
    if (calls.active && !this._hadCall) {
      this._hasFocus = document.activeElement?.matches(".call-button, call-bar *") ?? false;
      this._listDevices();
    }
    this._hadCall = Boolean(calls.active);
    this.requestUpdate();
  }

  /** Advance the call's clock, and stop ringing in time. */
  _tick() {
    if (calls.active || this.querySelector(".call-row")) this._changed();
  }

  async _listDevices() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    this._devices = devices.filter(({ kind }) => kind === "audioinput");
  }

  /** @param {string} text */
  _say(text) {
    clearTimeout(this._timer);
    this._note = text;
    this._timer = setTimeout(() => {
      this._note = "";
    }, NOTE_MS);
  }
}
customElements.define("call-bar", CallBar);
