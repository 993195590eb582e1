/**
 * Sends speech to an agent in a call: raw sound in pieces, and the `response.create` that names the
 * agent.
 */

/**
 * Base64 characters per frame: about two seconds of 16 bits at 24 kHz. A multiple of four, so that
 * each piece can be decoded alone.
 */
const PIECE = 128_000;

/**
 * Send an utterance as a turn that only this agent answers, aloud.
 * @param {import("./chat-session.js").ChatSession} session
 * @param {{callId: string, agent: string, audio: string, text?: string}} speech `audio` is base64
 *   of 16 bits at 24 kHz; `text` names the speakers
 * @returns {string} the event id of the turn; "" where it could not be sent
 */
export function speak(session, { callId, agent, audio, text = "" }) {
  if (!session.ready) return "";
  if (text) session.call("input.text", { text });
  for (let at = 0; at < audio.length; at += PIECE) {
    session.call("input.audio", {
      audio: audio.slice(at, at + PIECE),
      format: "pcm16",
      is_final: at + PIECE >= audio.length,
    });
  }
  return session.call("response.create", {
    response: { modalities: ["audio", "text"], output_audio_format: "pcm16" },
    call: { call_id: callId, agent },
  });
}
