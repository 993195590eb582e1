/**
 * Detects where speech begins and ends in frames of sound, by loudness alone: a cough counts as
 * speech, and a long pause ends a sentence. To avoid that, users hold a button while they speak.
 * Knows no document.
 */

import { joined, loudness, RATE } from "./samples.js";

/** The length of a frame. */
export const FRAME_MS = 20;
/** Loudness is the root of the mean square, from 0 to 1; times are in frames. */
export const THRESHOLDS = Object.freeze({
  /**
   * Loudness at which speech begins, and for how long: as in the server's own detector for the
   * Realtime API.
   */
  begin: 0.023,
  beginFrames: 3,
  /**
   * The same while the agent speaks: louder than the loudspeaker's echo in a microphone, and for
   * longer.
   */
  interrupt: 0.06,
  interruptFrames: 10,
  /** Loudness below which speech ends, and for how long. */
  silence: 0.015,
  silenceFrames: 35,
  /** Frames before the beginning that belong to the utterance. */
  prefixFrames: 15,
  /** Minimum of loud frames in an utterance: fewer are a click. */
  leastFrames: 10,
});
/** A shorter press is a mistake. */
const HELD_FRAMES = 10;

/**
 * @typedef {{samples: Float32Array, speakers: string[]}} Utterance recorded speech, at 24 kHz, and
 *   the ids of its speakers
 * @typedef {{type: "began"|"dropped"}|{type: "ended", utterance: Utterance}} Found
 */

export class SpeechDetector {
  /** @param {{mostSeconds: number}} options the maximum length of an utterance */
  constructor({ mostSeconds }) {
    this._most = Math.floor((1000 * mostSeconds) / FRAME_MS);
    /** Whether the agent is speaking, so that only loud speech interrupts it. */
    this.interrupts = false;
    /** Whether a button is held: everything is recorded, however quiet. */
    this.isHeld = false;
    /** @type {Float32Array[]} */
    this._frames = [];
    /** @type {Set<string>} */
    this._speakers = new Set();
    this._isSpeech = false;
    this._loud = 0;
    this._quiet = 0;
  }

  /** Whether an utterance is being recorded. */
  get isSpeech() {
    return this._isSpeech;
  }

  /**
   * Take the next frame.
   * @param {Float32Array} frame of FRAME_MS at 24 kHz
   * @param {Iterable<string>} speakers user ids of the current speakers
   * @returns {Found|null} what began or ended with it
   */
  push(frame, speakers) {
    const level = loudness(frame);
    this._frames.push(frame);
    if (this.isHeld) {
      for (const id of speakers) this._speakers.add(id);
      return this._frames.length >= this._most ? this.release() : null;
    }
    return this._isSpeech ? this._goOn(level, speakers) : this._wait(level, speakers);
  }

  /** The button is pressed: record everything from here on. */
  hold() {
    this._reset();
    this.isHeld = true;
  }

  /** The button is released. @returns {Found} */
  release() {
    this.isHeld = false;
    return this._end(this._frames.length >= HELD_FRAMES);
  }

  /** Discard the recording so far. */
  reset() {
    this.isHeld = false;
    this._reset();
  }

  /** @param {number} level @param {Iterable<string>} speakers @returns {Found|null} */
  _wait(level, speakers) {
    const [threshold, frames] = this.interrupts
      ? [THRESHOLDS.interrupt, THRESHOLDS.interruptFrames]
      : [THRESHOLDS.begin, THRESHOLDS.beginFrames];
    this._loud = level >= threshold ? this._loud + 1 : 0;
    if (this._loud < frames) {
      this._frames.splice(0, this._frames.length - THRESHOLDS.prefixFrames - frames);
      return null;
    }
    this._isSpeech = true;
    for (const id of speakers) this._speakers.add(id);
    return { type: "began" };
  }

  /** @param {number} level @param {Iterable<string>} speakers @returns {Found|null} */
  _goOn(level, speakers) {
    this._quiet = level < THRESHOLDS.silence ? this._quiet + 1 : 0;
    if (this._quiet === 0) {
      this._loud += 1;
      for (const id of speakers) this._speakers.add(id);
    }
    const isOver = this._quiet >= THRESHOLDS.silenceFrames || this._frames.length >= this._most;
    return isOver ? this._end(this._loud >= THRESHOLDS.leastFrames) : null;
  }

  /** @param {boolean} isSaid @returns {Found} */
  _end(isSaid) {
    const utterance = { samples: joined(this._frames), speakers: [...this._speakers] };
    this._reset();
    return isSaid ? { type: "ended", utterance } : { type: "dropped" };
  }

  _reset() {
    this._frames = [];
    this._speakers = new Set();
    this._isSpeech = false;
    this._loud = 0;
    this._quiet = 0;
  }
}

/** Cuts samples into frames of FRAME_MS at 24 kHz. */
export class Frames {
  constructor() {
    this._length = (RATE * FRAME_MS) / 1000;
    /** @type {Float32Array} */
    this._rest = new Float32Array(0);
  }

  /** @param {Float32Array} samples @returns {Float32Array[]} the frames that are complete */
  add(samples) {
    const all = joined([this._rest, samples]);
    const count = Math.floor(all.length / this._length);
    this._rest = all.slice(count * this._length);
    return Array.from({ length: count }, (_, n) =>
      all.slice(n * this._length, (n + 1) * this._length),
    );
  }
}
