/** Reads messages aloud, one at a time, with the browser's voices. */

import { announce } from "../dom.js";
import { drawn } from "../markdown/drawing.js";
import { gettext } from "../words.js";

/** Whether this browser has voices to read with. */
export const canSpeak = () =>
  "speechSynthesis" in globalThis && "SpeechSynthesisUtterance" in globalThis;

/**
 * Browsers cut off long utterances, so text is spoken in pieces of up to 300 characters that end
 * with a sentence.
 */
const PIECE = /[^.!?…。！？\n]{1,300}[.!?…。！？\n]*\s*/gu;
/** Elements that are not read aloud. */
const SILENT = "pre, table, .math, button, svg";

let spoken = "";

/** The id of the message being read aloud, "" for none. */
export const speaking = () => spoken;

/**
 * The words of a text, without markup; code and tables are only mentioned.
 * @param {string} text markdown
 */
export function wordsOf(text) {
  const box = document.createElement("div");
  box.append(drawn(text));
  for (const element of box.querySelectorAll(SILENT)) {
    const name = { PRE: gettext("Code. "), TABLE: gettext("A table. ") }[element.tagName];
    element.replaceWith(name ?? " ");
  }
  for (const block of box.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, blockquote"))
    block.append("\n");
  return (box.textContent ?? "").replace(/[ \t]+/g, " ").trim();
}

/** Stop reading. @returns {boolean} whether a message was being read */
export function stopSpeaking() {
  if (!spoken) return false;
  spoken = "";
  speechSynthesis.cancel();
  return true;
}

/**
 * Read a message aloud instead of the current one; the same message again stops it.
 * @param {{id: string, content: string, lang?: string}} entry
 */
export function readAloud({ id, content, lang }) {
  const wasSpoken = spoken;
  stopSpeaking();
  if (wasSpoken === id) {
    announce(gettext("Stopped reading."));
    return;
  }
  const pieces = wordsOf(content).match(PIECE) ?? [];
  if (pieces.length === 0) return;
  spoken = id;
  const language = lang || document.documentElement.lang;
  for (const [at, piece] of pieces.entries()) {
    const utterance = new SpeechSynthesisUtterance(piece);
    if (language) utterance.lang = language;
    if (at === pieces.length - 1)
      utterance.onend = () => {
        if (spoken === id) spoken = "";
      };
    utterance.onerror = () => {
      if (spoken === id) spoken = "";
    };
    speechSynthesis.speak(utterance);
  }
}

if (canSpeak()) {
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || !stopSpeaking()) return;
      // Escape was meant for this, and must not stop an answer.
      event.preventDefault();
      announce(gettext("Stopped reading."));
    },
    { capture: true },
  );
  addEventListener("pagehide", stopSpeaking);
}
