/**
 * Where speech begins and ends in frames of sound, by loudness alone: a cough is speech, and a long
 * pause ends a sentence. Who does not want that holds a button while they speak. Knows no document.
 */

import { joined, loudness, RATE } from "./samples.js";

/** The length of a frame. */
export const FRAME_MS = 20;
/** Loudness is the root of the mean square, from 0 to 1; times are in frames. */
export const THRESHOLDS = Object.freeze({
  /**
   * Speech is at least so loud to begin with, for so long: what the server's own detector of the
   * Realtime API takes.
   */
  begin: 0.023,
  beginFrames: 3,
  /**
   * While the agent speaks: louder than what a microphone takes up of a loudspeaker, and for
   * longer.
   */
  interrupt: 0.06,
  interruptFrames: 10,
  /** So quiet it is for so long after the end. */
  silence: 0.015,
  silenceFrames: 35,
  /** What came before the begin and belongs to it. */
  prefixFrames: 15,
  /** Loud frames of an utterance: fewer are a click. */
  leastFrames: 10,
});
/** A button that was held for less was pressed by mistake. */
const HELD_FRAMES = 10;

/**
 * @typedef {{samples: Float32Array, speakers: string[]}} Utterance what was said, at 24 kHz, and
 *   the ids of those who were loud meanwhile
 * @typedef {{type: "began"|"dropped"}|{type: "ended", utterance: Utterance}} Found
 */

export class SpeechDetector {
  /** @param {{mostSeconds: number}} options of an utterance, which ends then */
  constructor({ mostSeconds }) {
    this._most = Math.floor((1000 * mostSeconds) / FRAME_MS);
    /** Whether the agent speaks now, so that only loud speech interrupts it. */
    this.interrupts = false;
    /** Whether a button is held: all is taken, however loud it is. */
    this.isHeld = false;
    /** @type {Float32Array[]} */
    this._frames = [];
    /** @type {Set<string>} */
    this._speakers = new Set();
    this._isSpeech = false;
    this._loud = 0;
    this._quiet = 0;
  }

  /** Whether speech goes on. */
  get isSpeech() {
    return this._isSpeech;
  }

  /**
   * Take the next frame.
   * @param {Float32Array} frame of FRAME_MS at 24 kHz
   * @param {Iterable<string>} speakers ids of those who are loud now
   * @returns {Found|null} what it began or ended
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

  /** The button is pressed: from here on all is taken. */
  hold() {
    this._reset();
    this.isHeld = true;
  }

  /** The button is let go. @returns {Found} */
  release() {
    this.isHeld = false;
    return this._end(this._frames.length >= HELD_FRAMES);
  }

  /** Forget what was taken so far. */
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
