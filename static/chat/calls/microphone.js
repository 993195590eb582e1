/** The microphone of this device, and advice for when it cannot be used. */

import { gettext } from "../words.js";

/**
 * Whether this browser can take part in calls. Over plain http, except on localhost, browsers offer
 * no microphone.
 */
export const hasMicrophone = () => Boolean(navigator.mediaDevices?.getUserMedia);
export const canCall = () => hasMicrophone() && "RTCPeerConnection" in globalThis;

/** @type {Record<string, string>} */
const REASONS = {
  NotAllowedError: gettext(
    "Microphone access is blocked. Allow it for this site in your browser and try again.",
  ),
  NotFoundError: gettext("No microphone found. Plug one in and try again."),
  NotReadableError: gettext(
    "Another program is using the microphone. Close it there and try again.",
  ),
  OverconstrainedError: gettext("That microphone is no longer available. Choose another one."),
};

/** Says why the microphone cannot be used, for the user. */
export class MicrophoneError extends Error {}

/**
 * @param {string} [deviceId]
 * @returns {Promise<MediaStream>} rejects with a MicrophoneError
 */
export async function openMicrophone(deviceId = "") {
  try {
    const audio = {
      echoCancellation: true,
      noiseSuppression: true,
      ...(deviceId ? { deviceId: { exact: deviceId } } : {}),
    };
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    throw new MicrophoneError(
      REASONS[error.name] || gettext("The microphone can't be used. Try again."),
    );
  }
}

/** @param {MediaStream|undefined} stream */
export const closeMicrophone = (stream) => stream?.getTracks().forEach((track) => track.stop());
