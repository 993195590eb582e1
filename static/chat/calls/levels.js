/** Measures the loudness of streams, to show who is speaking. */

const LOOK_MS = 150;
const SPEAKING = 0.015;
/** How long a speaker counts as speaking during a pause. */
const STAYS_MS = 500;

/**
 * @param {AnalyserNode} analyser
 * @param {Float32Array<ArrayBuffer>} samples
 * @returns {number} the loudness, from 0 to 1
 */
function loudness(analyser, samples) {
  analyser.getFloatTimeDomainData(samples);
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}

export class Levels {
  /**
   * @param {(speaking: Set<string>) => void} changed called when a person starts or stops speaking
   */
  constructor(changed) {
    this._changed = changed;
    this._context = new AudioContext();
    /**
     * @type {Map<string, {source: MediaStreamAudioSourceNode, analyser: AnalyserNode, samples:
     *   Float32Array<ArrayBuffer>, last: number}>}
     */
    this._watched = new Map();
    /** @type {Set<string>} */
    this.speaking = new Set();
    this._timer = setInterval(() => this._look(), LOOK_MS);
  }

  /** @param {string} id @param {MediaStream} stream */
  watch(id, stream) {
    this.forget(id);
    const source = this._context.createMediaStreamSource(stream);
    const analyser = this._context.createAnalyser();
    analyser.fftSize = 1024;
    source.connect(analyser);
    this._watched.set(id, {
      source,
      analyser,
      samples: new Float32Array(analyser.fftSize),
      last: 0,
    });
  }

  /** @param {string} id */
  forget(id) {
    this._watched.get(id)?.source.disconnect();
    this._watched.delete(id);
  }

  /** @param {string} id @returns {number} how loud it is now */
  level(id) {
    const one = this._watched.get(id);
    return one ? loudness(one.analyser, one.samples) : 0;
  }

  close() {
    clearInterval(this._timer);
    this._context.close();
  }

  _look() {
    const now = Date.now();
    for (const one of this._watched.values())
      if (loudness(one.analyser, one.samples) > SPEAKING) one.last = now;
    const speaking = new Set(
      [...this._watched].filter(([, { last }]) => now - last < STAYS_MS).map(([id]) => id),
    );
    if (speaking.size === this.speaking.size && [...speaking].every((id) => this.speaking.has(id)))
      return;
    this.speaking = speaking;
    this._changed(speaking);
  }
}
