/** Runs on the audio thread: passes the mixed samples on to the page in batches. */

const TOGETHER = 1024;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this._samples = new Float32Array(TOGETHER);
    this._count = 0;
  }

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    // Without a source there is silence, which ends the utterance.
    const samples = channels?.[0] ?? new Float32Array(128);
    for (const sample of samples) {
      this._samples[this._count] = sample;
      this._count += 1;
      if (this._count < TOGETHER) continue;
      this.port.postMessage(this._samples);
      this._samples = new Float32Array(TOGETHER);
      this._count = 0;
    }
    return true;
  }
}
registerProcessor("capture", Capture);
