/** Plays the pieces of an agent's answers in order, here and into the call. */

import { RATE, fromBase64 } from "./samples.js";

/** Seconds by which the first piece is delayed, so that the next arrives before it ends. */
const AHEAD = 0.12;

export class AgentVoice {
  /**
   * @param {AudioContext} context @param {AudioNode} call where the others receive it
   * @param {() => void} played called when all pieces were played
   */
  constructor(context, call, played) {
    this._context = context;
    this._played = played;
    this._volume = context.createGain();
    this._volume.connect(call);
    this._volume.connect(context.destination);
    /** @type {Set<AudioBufferSourceNode>} */
    this._sources = new Set();
    this._nextAt = 0;
  }

  /** @param {string} audio base64 of 16 bits at 24 kHz */
  play(audio) {
    const samples = fromBase64(audio);
    if (!samples.length) return;
    const buffer = this._context.createBuffer(1, samples.length, RATE);
    buffer.copyToChannel(samples, 0);
    const source = this._context.createBufferSource();
    source.buffer = buffer;
    source.connect(this._volume);
    const now = this._context.currentTime;
    if (this._nextAt < now) this._nextAt = now + AHEAD;
    source.start(this._nextAt);
    this._nextAt += buffer.duration;
    this._sources.add(source);
    source.onended = () => {
      this._sources.delete(source);
      if (!this._sources.size) this._played();
    };
  }

  /** Stop at once. */
  hush() {
    for (const source of this._sources) {
      source.onended = null;
      source.stop();
    }
    this._sources.clear();
    this._nextAt = 0;
  }

  close() {
    this.hush();
    this._volume.disconnect();
  }
}
