/**
 * Records a voice note: one click starts and the next stops it, or the user holds the button while
 * speaking.
 */

import { Levels } from "../calls/levels.js";
import {
  MicrophoneError,
  closeMicrophone,
  hasMicrophone,
  openMicrophone,
} from "../calls/microphone.js";
import { announce } from "../dom.js";
import { glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const LONGEST_MS = 5 * 60_000;
const SHORTEST_MS = 500;
/** Longer than a click. */
const HELD_MS = 400;
const LOOK_MS = 100;
/** Speech needs no more; five minutes are about a megabyte. */
const BITS_PER_SECOND = 32_000;
const TYPES = ["audio/webm", "audio/mp4", "audio/ogg"];
const LOUD = 0.25;
const ID = "note";

/** @param {number} ms */
const clock = (ms) =>
  `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

/**
 * @typedef {object} Recording
 * @property {MediaRecorder} recorder
 * @property {MediaStream} stream
 * @property {Levels} levels
 * @property {Blob[]} pieces
 * @property {number} since
 * @property {number} timer
 * @property {boolean} isKept
 */

/** The recorder of a composer: a reactive controller of Lit. */
export class VoiceNote {
  /**
   * @param {import("../view.js").View} host
   * @param {(text: string) => void} say
   * @param {(file: File) => void} done takes the recording
   */
  constructor(host, say, done) {
    this._host = host;
    this._say = say;
    this._done = done;
    /** @type {Recording|null} */
    this._recording = null;
    this._pressedAt = 0;
    this._isOpening = false;
    this._endsAtOnce = false;
    /** Ignores the click that follows a long press. */
    this._skipsClick = false;
    host.addController(this);
  }

  hostDisconnected() {
    this._stop(false);
  }

  get isRecording() {
    return this._recording !== null;
  }

  /** The button that starts a recording. */
  button() {
    if (!hasMicrophone() || !("MediaRecorder" in globalThis)) return nothing;
    const label = this._recording ? gettext("Finish recording") : gettext("Record a voice note");
    return html`<button
      type="button"
      class="icon-button record ${this._recording ? "is-recording" : ""}"
      aria-label=${label}
      title=${interpolate(gettext("%(what)s (click, or hold to talk)"), { what: label })}
      data-testid="record"
      @pointerdown=${(/** @type {PointerEvent} */ event) => this._press(event)}
      @pointerup=${() => this._release()}
      @click=${(/** @type {MouseEvent} */ event) => this._click(event)}
    >
      ${glyph(this._recording ? "check" : "microphone")}
    </button>`;
  }

  /** The strip above the text while recording. */
  template() {
    const recording = this._recording;
    if (!recording) return nothing;
    return html`<div
      class="voice-strip"
      role="group"
      aria-label=${gettext("Voice note")}
      data-testid="recording"
    >
      <span class="voice-dot" aria-hidden="true"></span
      ><span class="voice-time">${clock(Date.now() - recording.since)}</span>
      <meter
        class="voice-level"
        min="0"
        max=${LOUD}
        value=${recording.levels.level(ID)}
        aria-hidden="true"
      ></meter>
      <button
        type="button"
        class="button button-quiet"
        data-testid="cancel-recording"
        @click=${() => this._cancel()}
      >
        ${gettext("Cancel")}
      </button>
    </div>`;
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether Escape ended a recording */
  escape(event) {
    if (event.key !== "Escape" || !this._recording) return false;
    event.preventDefault();
    this._cancel();
    return true;
  }

  /** @param {PointerEvent} event */
  _press(event) {
    if (event.button || this._recording) return;
    this._pressedAt = Date.now();
    /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
    this._start();
  }

  _release() {
    const isHeld = this._pressedAt > 0 && Date.now() - this._pressedAt > HELD_MS;
    if (!isHeld) return;
    this._skipsClick = true;
    if (this._recording) this._stop(true);
    else this._endsAtOnce = this._isOpening;
  }

  /** Start by keyboard; a pointer has already started with the press. @param {MouseEvent} event */
  _click(event) {
    const wasPressed = this._pressedAt > 0 && event.detail > 0;
    this._pressedAt = 0;
    const isOver = this._skipsClick;
    this._skipsClick = false;
    if (wasPressed || isOver) return;
    if (this._recording) this._stop(true);
    else this._start();
  }

  async _start() {
    if (this._isOpening) return;
    this._isOpening = true;
    this._endsAtOnce = false;
    try {
      const stream = await openMicrophone();
      if (this._endsAtOnce || !this._host.isConnected) {
        closeMicrophone(stream);
        this._say(gettext("Hold the button while you speak, or click it to start and stop."));
        return;
      }
      this._record(stream);
    } catch (error) {
      if (!(error instanceof MicrophoneError)) throw error;
      this._say(error.message);
    } finally {
      this._isOpening = false;
    }
  }

  /** @param {MediaStream} stream */
  _record(stream) {
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type)) ?? "";
    const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
    const levels = new Levels(() => {});
    levels.watch(ID, stream);
    const timer = window.setInterval(() => this._look(), LOOK_MS);
    const recording = {
      recorder,
      stream,
      levels,
      pieces: /** @type {Blob[]} */ ([]),
      since: Date.now(),
      timer,
      isKept: false,
    };
    recorder.ondataavailable = ({ data }) => recording.pieces.push(data);
    recorder.onstop = () => this._finished(recording);
    recorder.start();
    this._recording = recording;
    announce(gettext("Recording. Press Esc to cancel."));
    this._host.requestUpdate();
  }

  _look() {
    if (this._recording && Date.now() - this._recording.since > LONGEST_MS) {
      this._stop(true);
      this._say(gettext("Voice notes can be up to 5 minutes long. Your recording was attached."));
    }
    this._host.requestUpdate();
  }

  _cancel() {
    this._stop(false);
    announce(gettext("The recording was discarded."));
    /** @type {HTMLElement|null} */ (this._host.querySelector(".record"))?.focus();
  }

  /** @param {boolean} isKept */
  _stop(isKept) {
    const recording = this._recording;
    if (!recording) return;
    this._recording = null;
    this._pressedAt = 0;
    recording.isKept = isKept;
    recording.recorder.stop();
    clearInterval(recording.timer);
    recording.levels.close();
    this._host.requestUpdate();
  }

  /** @param {Recording} recording */
  _finished({ recorder, stream, pieces, since, isKept }) {
    closeMicrophone(stream);
    if (!isKept) return;
    const lasted = Date.now() - since;
    if (lasted < SHORTEST_MS) {
      this._say(gettext("Hold the button while you speak, or click it to start and stop."));
      return;
    }
    const type = recorder.mimeType.split(";")[0];
    const ending = type.split("/")[1] || "webm";
    this._done(
      new File(pieces, `Voice note ${clock(lasted).replace(":", ".")}.${ending}`, { type }),
    );
  }
}
