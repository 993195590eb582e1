/** A sound player: play and pause, position, and speed. Only one plays at a time. */

import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const SPEEDS = [1, 1.5, 2, 0.75];
/** Files written while recording do not state their length; seeking past the end reveals it. */
const BEHIND_THE_END = 1e7;

/** @param {number} seconds */
const clock = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

/** @type {HTMLAudioElement|null} */
let playing = null;

class SoundPlayer extends View {
  static properties = {
    src: { attribute: false },
    name: { attribute: false },
    _isPlaying: { state: true },
    _at: { state: true },
    _length: { state: true },
    _speed: { state: true },
    _failed: { state: true },
  };

  constructor() {
    super();
    this.src = "";
    this.name = gettext("Sound");
    this._isPlaying = false;
    this._failed = false;
    this._at = 0;
    this._length = 0;
    this._speed = 1;
    /** @type {HTMLAudioElement|null} */
    this._audio = null;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._audio?.pause();
  }

  render() {
    const label = this._isPlaying ? gettext("Pause") : gettext("Play");
    if (this._failed)
      return html`<p class="sound-failed">
        ${interpolate(gettext("%(name)s can't be played here."), { name: this.name })}
        <a href=${this.src} download>${gettext("Download")}</a>
      </p>`;
    return html`<div
      class="sound-player"
      role="group"
      aria-label=${this.name}
      data-testid="sound"
      data-state=${this._isPlaying ? "playing" : "paused"}
    >
      <button
        type="button"
        class="icon-button sound-play"
        aria-label="${label} ${this.name}"
        title=${label}
        data-testid="play"
        @click=${() => this._toggle()}
      >
        ${glyph(this._isPlaying ? "pause" : "play")}
      </button>
      <input
        type="range"
        min="0"
        max=${Math.max(this._length, 0.1)}
        step="0.1"
        .value=${String(this._at)}
        aria-label=${interpolate(gettext("Position in %(name)s"), { name: this.name })}
        aria-valuetext=${interpolate(gettext("%(at)s of %(length)s"), {
          at: clock(this._at),
          length: clock(this._length),
        })}
        @input=${(/** @type {any} */ { target }) => this._goTo(Number(target.value))}
      />
      <span class="sound-time" data-testid="sound-time"
        >${
          this._isPlaying || this._at
            ? clock(this._at)
            : this._length
              ? clock(this._length)
              : "–:––"
        }</span
      >
      <button
        type="button"
        class="button button-quiet sound-speed"
        aria-label=${interpolate(gettext("Speed: %(n)s times"), { n: this._speed })}
        title=${gettext("Speed")}
        @click=${() => this._faster()}
      >
        ${this._speed}×
      </button>
    </div>`;
  }

  /** Create the audio element with the first click: a chat has many sounds, and few are played. */
  _open() {
    if (this._audio) return this._audio;
    const audio = new Audio(this.src);
    this._audio = audio;
    audio.onloadedmetadata = () => this._measure(audio);
    audio.ontimeupdate = () => {
      if (!this._isMeasuring) this._at = audio.currentTime;
    };
    audio.onplay = () => {
      this._isPlaying = true;
    };
    audio.onpause = () => {
      this._isPlaying = false;
    };
    audio.onended = () => {
      this._at = 0;
    };
    audio.onerror = () => {
      this._failed = true;
    };
    return audio;
  }

  /** @param {HTMLAudioElement} audio */
  _measure(audio) {
    if (Number.isFinite(audio.duration)) {
      this._length = audio.duration;
      return;
    }
    this._isMeasuring = true;
    audio.ondurationchange = () => {
      if (!Number.isFinite(audio.duration)) return;
      audio.ondurationchange = null;
      this._length = audio.duration;
      audio.currentTime = 0;
      this._isMeasuring = false;
      this._play(audio);
    };
    audio.currentTime = BEHIND_THE_END;
  }

  _toggle() {
    const audio = this._open();
    if (this._isPlaying) audio.pause();
    else this._play(audio);
  }

  /** @param {HTMLAudioElement} audio */
  _play(audio) {
    if (playing !== audio) playing?.pause();
    playing = audio;
    audio.playbackRate = this._speed;
    audio.play().catch((error) => {
      // Paused before it began, or while its length was learned.
      if (error.name !== "AbortError") this._failed = true;
    });
  }

  /** @param {number} seconds */
  _goTo(seconds) {
    this._open().currentTime = seconds;
    this._at = seconds;
  }

  _faster() {
    this._speed = SPEEDS[(SPEEDS.indexOf(this._speed) + 1) % SPEEDS.length];
    if (this._audio) this._audio.playbackRate = this._speed;
  }
}
customElements.define("sound-player", SoundPlayer);
