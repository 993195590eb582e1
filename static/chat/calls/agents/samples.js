/**
 * Sound samples: Web Audio's floats from -1 to 1, and the 16 bits at 24 kHz that agents receive and
 * send. Knows no document.
 */

/** Samples per second of the sound that agents receive and send. */
export const RATE = 24_000;

/**
 * Resample: average the samples that fall together, or interpolate between two.
 * @param {Float32Array} samples
 * @param {number} from
 * @param {number} [to] samples of a second
 * @returns {Float32Array}
 */
export function resampled(samples, from, to = RATE) {
  if (from === to) return samples;
  const step = from / to;
  const output = new Float32Array(Math.floor(samples.length / step));
  for (let n = 0; n < output.length; n += 1) {
    const begin = n * step;
    const end = Math.min(samples.length, begin + step);
    if (step < 1) {
      const at = Math.floor(begin);
      const next = Math.min(at + 1, samples.length - 1);
      output[n] = samples[at] + (samples[next] - samples[at]) * (begin - at);
      continue;
    }
    let sum = 0;
    let count = 0;
    for (let at = Math.floor(begin); at < end; at += 1, count += 1) sum += samples[at];
    output[n] = sum / count;
  }
  return output;
}

/**
 * The loudness of samples: the root of their mean square, from 0 to 1.
 * @param {Float32Array} samples
 */
export function loudness(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length ? Math.sqrt(sum / samples.length) : 0;
}

/** Concatenate frames. @param {Float32Array[]} frames @returns {Float32Array} */
export function joined(frames) {
  const all = new Float32Array(frames.reduce((length, frame) => length + frame.length, 0));
  let at = 0;
  for (const frame of frames) {
    all.set(frame, at);
    at += frame.length;
  }
  return all;
}

/**
 * Samples as base64 of 16 bits each, the lower byte first.
 * @param {Float32Array} samples
 * @returns {string}
 */
export function toBase64(samples) {
  const bytes = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((sample, n) =>
    bytes.setInt16(n * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true),
  );
  let text = "";
  for (let n = 0; n < bytes.byteLength; n += 1) text += String.fromCharCode(bytes.getUint8(n));
  return btoa(text);
}

/** @param {string} text base64 of 16 bits for each sample @returns {Float32Array<ArrayBuffer>} */
export function fromBase64(text) {
  const raw = atob(text);
  const samples = new Float32Array(Math.floor(raw.length / 2));
  for (let n = 0; n < samples.length; n += 1) {
    const value = raw.charCodeAt(n * 2) | (raw.charCodeAt(n * 2 + 1) << 8);
    samples[n] = (value > 32_767 ? value - 65_536 : value) / 32_768;
  }
  return samples;
}
