/** The transcript of a sound, if the server has one. */

import { isApiError } from "../api.js";
import { api } from "../context.js";
import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/** Delays before asking again for a transcript in progress. */
const AGAIN_MS = [2_000, 4_000, 8_000, 16_000, 30_000, 60_000];

/** Loaded transcripts, by the address of the sound. @type {Map<string, string>} */
const known = new Map();
const learned = new EventTarget();

/**
 * Store an agent's transcript for the sound of a message; with several sounds, it is unknown which
 * one it belongs to.
 * @param {{content_items?: any[]|null}|undefined} message
 * @param {string} text
 */
export function learnTranscript(message, text) {
  const sounds = (message?.content_items ?? []).filter(({ type }) => type === "audio");
  const src = sounds.length === 1 ? sounds[0].audio?.url : "";
  if (!src) return;
  known.set(src, text);
  learned.dispatchEvent(new Event("change"));
}

class SoundTranscript extends View {
  static properties = { src: { attribute: false }, _text: { state: true } };

  constructor() {
    super();
    this.src = "";
    this._text = "";
    this._timer = 0;
    /** @type {IntersectionObserver|null} */
    this._seen = null;
    this._onLearned = () => known.has(this.src) && this._look();
  }

  connectedCallback() {
    super.connectedCallback();
    learned.addEventListener("change", this._onLearned);
    // The message list may move the element, which disconnects it.
    if (this.hasUpdated) this._look();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    learned.removeEventListener("change", this._onLearned);
    this._seen?.disconnect();
    clearTimeout(this._timer);
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("src")) this._look();
  }

  _look() {
    this._seen?.disconnect();
    clearTimeout(this._timer);
    this._text = known.get(this.src) ?? "";
    if (known.has(this.src)) return;
    // Load only transcripts that come into view.
    this._seen = new IntersectionObserver(([entry]) => entry.isIntersecting && this._ask(0));
    this._seen.observe(this.closest(".message") ?? this);
  }

  /** @param {number} attempt */
  async _ask(attempt) {
    this._seen?.disconnect();
    const { src } = this;
    let answer;
    try {
      answer = await api.post(`/contents/${src.split("/").at(-1)}/transcript`);
    } catch (error) {
      // A sound is complete without a transcript: report nothing.
      if (isApiError(error)) return;
      throw error;
    }
    if (src !== this.src || !this.isConnected) return;
    if (answer.state === "done") {
      known.set(src, answer.text);
      this._text = answer.text;
    } else if (answer.state === "asked" && attempt < AGAIN_MS.length)
      this._timer = window.setTimeout(() => this._ask(attempt + 1), AGAIN_MS[attempt]);
  }

  render() {
    return (
      this._text &&
      html`<details class="sound-transcript" open data-testid="transcript">
        <summary>${gettext("Transcript")}</summary>
        <p dir="auto">${this._text}</p>
      </details>`
    );
  }
}
customElements.define("sound-transcript", SoundTranscript);
