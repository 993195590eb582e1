/**
 * The agents of the call that this page hosts: it mixes their input, detects speech, and plays
 * their answers.
 */

import { speak } from "../../../uamp/speech.js";
import { AgentTurns } from "./agent-turns.js";
import { AgentVoice } from "./agent-voice.js";
import { changesOf } from "./mixing.js";
import { resampled, toBase64 } from "./samples.js";
import { Frames, SpeechDetector } from "./speech-detector.js";

/** Time in which the server, after a lost connection, resends the results of a turn. */
const REPLAYED_MS = 4_000;

/**
 * @typedef {import("../../../uamp/chat-session.js").ChatSession} ChatSession
 *
 * @typedef {object} HostedAgent
 * @property {AgentTurns} turns
 * @property {AgentVoice} voice
 * @property {SpeechDetector} detector
 * @property {boolean} isHandsFree whether speech is sent without a button
 *
 * @typedef {object} HostOptions
 * @property {ChatSession} session of the chat
 * @property {string} callId
 * @property {number} mostSeconds of an utterance
 * @property {() => Iterable<string>} speakers user ids of the current speakers
 * @property {(speakers: string[]) => string} beside returns the text for an utterance
 * @property {() => void} changed
 * @property {(agent: string, what: "offline"|"waits"|"lost") => void} said
 */

export class AgentHost {
  /** @param {HostOptions} options */
  constructor(options) {
    this._options = options;
    this._context = new AudioContext();
    this._call = this._context.createMediaStreamDestination();
    this._mixed = this._context.createGain();
    this._frames = new Frames();
    /** @type {Map<string, HostedAgent>} by name */
    this.agents = new Map();
    /** @type {Map<string, MediaStream>} the mixed streams, by user id */
    this._streams = new Map();
    /** @type {Map<string, MediaStreamAudioSourceNode>} */
    this._sources = new Map();
    this._gone = new AbortController();
    this._listen();
  }

  /** The voices of the agents, for the other participants. */
  get stream() {
    return this._call.stream;
  }

  /** Start capturing sound. */
  async start() {
    await this._context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    if (this._gone.signal.aborted) return;
    const capture = new AudioWorkletNode(this._context, "capture", {
      channelCount: 1,
      channelCountMode: "explicit",
    });
    capture.port.onmessage = ({ data }) => this._take(data);
    // Web Audio runs only nodes connected to the destination; this one outputs silence.
    this._mixed.connect(capture).connect(this._context.destination);
    await this._context.resume();
  }

  /** Host exactly these agents. @param {string[]} names */
  update(names) {
    for (const [name, agent] of this.agents) if (!names.includes(name)) this._drop(name, agent);
    for (const name of names) if (!this.agents.has(name)) this.agents.set(name, this._made(name));
  }

  /** Mix exactly these streams. @param {Map<string, MediaStream>} streams by user id */
  mix(streams) {
    const { gone, come } = changesOf(this._streams, streams);
    for (const id of gone) this._sources.get(id)?.disconnect();
    for (const id of come) {
      const source = this._context.createMediaStreamSource(
        /** @type {MediaStream} */ (streams.get(id)),
      );
      source.connect(this._mixed);
      this._sources.set(id, source);
    }
    this._streams = streams;
  }

  /** @param {string} name @param {boolean} isHandsFree */
  setHandsFree(name, isHandsFree) {
    const agent = this.agents.get(name);
    if (!agent) return;
    agent.isHandsFree = isHandsFree;
    agent.detector.reset();
    this._options.changed();
  }

  /** Record everything from now on, for one agent. @param {string} name */
  hold(name) {
    const agent = this.agents.get(name);
    if (!agent || agent.detector.isHeld) return;
    agent.turns.began();
    agent.detector.hold();
    this._options.changed();
  }

  /** Send everything recorded since `hold`. @param {string} name */
  release(name) {
    const agent = this.agents.get(name);
    if (!agent?.detector.isHeld) return;
    this._follow(agent, agent.detector.release());
    this._options.changed();
  }

  /**
   * A turn was refused.
   * @param {string} eventId
   * @returns {boolean} whether it was addressed to one of the agents
   */
  refused(eventId) {
    return [...this.agents.values()].some(({ turns }) => turns.refused(eventId));
  }

  close() {
    this.update([]);
    this._gone.abort();
    this._context.close();
  }

  /** @param {string} name @returns {HostedAgent} */
  _made(name) {
    const { session, callId, beside, changed, said } = this._options;
    /** @type {AgentVoice} */
    const voice = new AgentVoice(this._context, this._call, () => turns.played());
    const turns = new AgentTurns({
      speak: ({ samples, speakers }) =>
        speak(session, { callId, agent: name, audio: toBase64(samples), text: beside(speakers) }),
      cancel: (responseId) => session.cancel(responseId),
      play: (audio) => voice.play(audio),
      hush: () => voice.hush(),
      changed: (state) => {
        detector.interrupts = state === "speaks";
        if (this.agents.has(name))
          session.call("call.agent_state", { call_id: callId, agent: name, state });
        changed();
      },
      said: (what) => said(name, what),
    });
    const detector = new SpeechDetector({ mostSeconds: this._options.mostSeconds });
    return { turns, voice, detector, isHandsFree: true };
  }

  /** @param {string} name @param {HostedAgent} agent */
  _drop(name, { turns, voice }) {
    this.agents.delete(name);
    turns.close();
    voice.close();
  }

  /** @param {Float32Array} samples at the context's rate */
  _take(samples) {
    for (const frame of this._frames.add(resampled(samples, this._context.sampleRate))) {
      for (const agent of this.agents.values()) {
        if (!agent.isHandsFree && !agent.detector.isHeld) continue;
        const wasHeld = agent.detector.isHeld;
        const change = agent.detector.push(frame, this._options.speakers());
        if (change) this._follow(agent, change);
        if (wasHeld && change) this._options.changed();
      }
    }
  }

  /** @param {HostedAgent} agent @param {import("./speech-detector.js").Found} change */
  _follow({ turns }, change) {
    if (change.type === "began") turns.began();
    else if (change.type === "ended") turns.said(change.utterance);
  }

  _listen() {
    const { session } = this._options;
    const { signal } = this._gone;
    /** @param {string} type @param {(turns: AgentTurns, detail: any) => void} take */
    const on = (type, take) =>
      session.addEventListener(
        type,
        (event) => {
          for (const { turns } of [...this.agents.values()])
            take(turns, /** @type {CustomEvent} */ (event).detail);
        },
        { signal },
      );
    const waiting = (/** @type {AgentTurns} */ turns) =>
      turns.waiting(
        [...session.payments.list, ...session.approvals.list].map(({ responseId }) => responseId),
      );
    on("message", (turns, { message }) => turns.message(message));
    on("response", (turns, response) => turns.response(response));
    on("sound", (turns, event) => turns.sound(event.response_id, event.delta.audio));
    on(
      "participants",
      (turns, event) => event.type === "agent.stopped" && turns.stopped(event.message_id),
    );
    on("response-end", (turns, { id }) => turns.ended(id));
    on("payments", waiting);
    on("approvals", waiting);
    for (const type of ["payments", "approvals"])
      session.addEventListener(type, () => this._options.changed(), { signal });
    on("reset", (turns) => turns.lost());
    on("ready", (turns) => setTimeout(() => turns.reconnected(), REPLAYED_MS));
  }
}
