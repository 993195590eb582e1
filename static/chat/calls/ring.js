/** The sound of a ringing call: off unless the user turns it on for this device. */

const KEY = "uamp:ring";
const EVERY_MS = 3_000;

/** @returns {boolean} whether calls ring aloud on this device */
export const ringsAloud = () => localStorage.getItem(KEY) === "on";

/** @param {boolean} isOn */
export const setRingsAloud = (isOn) => localStorage.setItem(KEY, isOn ? "on" : "off");

/** Two soft tones every three seconds, until it is stopped. */
export class Ring {
  start() {
    if (this._context) return;
    this._context = new AudioContext();
    this._timer = setInterval(() => this._play(), EVERY_MS);
    this._play();
  }

  stop() {
    clearInterval(this._timer);
    this._context?.close();
    this._context = undefined;
  }

  _play() {
    const context = this._context;
    if (!context) return;
    for (const [frequency, after] of [
      [660, 0],
      [880, 0.22],
    ]) {
      const tone = context.createOscillator();
      const volume = context.createGain();
      const at = context.currentTime + after;
      tone.frequency.value = frequency;
      volume.gain.setValueAtTime(0, at);
      volume.gain.linearRampToValueAtTime(0.08, at + 0.03);
      volume.gain.linearRampToValueAtTime(0, at + 0.35);
      tone.connect(volume).connect(context.destination);
      tone.start(at);
      tone.stop(at + 0.4);
    }
  }
}
