/**
 * The agents of the call that this page is in: their hosts, their states, and those hosted here.
 */

import { AgentHost } from "./agent-host.js";
import { namesBeside, streamsForAgents } from "./mixing.js";
import { gettext, interpolate } from "../../words.js";

/**
 * @typedef {import("./agent-turns.js").State} State
 * @typedef {import("../types.js").Call} Call
 * @typedef {import("../types.js").Active} Active
 * @typedef {{agent_id: string, agent: string, host: string, state: string, joined_at: number,
 *   reason?: string}} CallAgent
 * @typedef {import("../../../uamp/chat-session.js").ChatSession} ChatSession
 */

/** @type {Record<"offline"|"waits"|"lost", string>} */
const SAID = {
  offline: gettext("You're offline: %(agent)s didn't get what you said."),
  waits: gettext("%(agent)s is waiting for payment or approval. Decide first, then say it again."),
  lost: gettext("The connection was lost, and what you said didn't reach %(agent)s. Say it again."),
};

export class CallAgents {
  /**
   * @param {Active} active
   * @param {{session: ChatSession, meId: string, mostSeconds: number, changed: () => void, say:
   *   (text: string) => void}} page
   */
  constructor(active, { session, meId, mostSeconds, changed, say }) {
    this._active = active;
    this._session = session;
    this._meId = meId;
    this._mostSeconds = mostSeconds;
    this._changed = changed;
    this._say = say;
    /** @type {CallAgent[]} */
    this._all = [];
    /** @type {Call["members"]} */
    this._members = [];
    /** The states of agents, by name. @type {Map<string, State>} */
    this._states = new Map();
    /** @type {Set<string>} ids of events whose refusal is shown */
    this._asked = new Set();
    /** @type {AgentHost|null} */
    this.host = null;
    active.mesh.addEventListener("change", () => this.remix());
    active.mesh.addEventListener("stream", () => this.remix());
  }

  /** The agents currently in the call. */
  get joined() {
    return this._all.filter(({ state }) => state === "joined");
  }

  /** The current state of an agent. @param {string} name @returns {State} */
  stateOf(name) {
    return this.host?.agents.get(name)?.turns.state ?? this._states.get(name) ?? "listens";
  }

  /** Whether an answer belongs to an agent that this page hosts. @param {string} responseId */
  isAnswer(responseId) {
    return (
      Boolean(responseId) &&
      [...(this.host?.agents.values() ?? [])].some(({ turns }) => turns.responseId === responseId)
    );
  }

  /** Add an agent, or take it over from its host. @param {string} name */
  add(name) {
    this._ask("call.agent_add", name);
  }

  /** Remove an agent from the call. @param {string} name */
  remove(name) {
    this._ask("call.agent_remove", name);
  }

  /** @param {Call} call as it is now */
  follow(call) {
    const before = new Map(this._all.map((one) => [one.agent, one]));
    this._all = call.agents ?? [];
    this._members = call.members;
    for (const one of this._all) {
      const known = before.get(one.agent);
      if (known?.joined_at !== one.joined_at) this._states.delete(one.agent);
      if (known?.state === "joined" && one.reason === "host_left") this._sayLeft(known);
    }
    const mine = this.joined.filter(({ host }) => host === this._meId).map(({ agent }) => agent);
    if (mine.length && !this.host) this._begin();
    this.host?.update(mine);
    this.remix();
  }

  /** @param {{agent: string, state: State, from: string}} event `call.agent_state` */
  take({ agent, state, from }) {
    if (!this.joined.some((one) => one.agent === agent && one.host === from)) return;
    this._states.set(agent, state);
    this._changed();
  }

  /**
   * An event was refused.
   * @param {{message?: string, code?: string, details?: {event_id?: string}}} error
   */
  refused(error) {
    const eventId = error.details?.event_id ?? "";
    if (this._asked.delete(eventId) || this.host?.refused(eventId))
      this._say(error.message || error.code || "");
  }

  /** Mix again: the streams may have changed. */
  remix() {
    const { stream, mesh } = this._active;
    const peers = [...mesh.peers.values()].filter((peer) => peer.stream.getAudioTracks().length);
    this.host?.mix(streamsForAgents({ id: this._meId, stream }, peers));
  }

  close() {
    this.host?.close();
    this.host = null;
  }

  /** @param {string} type @param {string} agent */
  _ask(type, agent) {
    const eventId = this._session.call(type, { call_id: this._active.callId, agent });
    if (eventId) this._asked.add(eventId);
    else this._say(gettext("You're offline. Try again when you're back online."));
  }

  _begin() {
    const { callId, levels, mesh } = this._active;
    const host = new AgentHost({
      session: this._session,
      callId,
      mostSeconds: this._mostSeconds,
      speakers: () => levels.speaking,
      beside: (speakers) => this._beside(speakers),
      changed: this._changed,
      said: (agent, what) => this._say(interpolate(SAID[what], { agent })),
    });
    this.host = host;
    mesh.addAgents(host.stream);
    host.start().catch((error) => {
      this._say(gettext("Your browser can't process sound for agents. Use a newer one."));
      throw error;
    });
  }

  /** The text beside an utterance; none for a single speaker. @param {string[]} speakers */
  _beside(speakers) {
    const names = namesBeside(speakers, this._members, this._meId).join(", ");
    return names && interpolate(gettext("Said in the call by %(names)s"), { names });
  }

  /** @param {CallAgent} agent */
  _sayLeft({ agent, host }) {
    const name =
      this._members.find(({ user_id: id }) => id === host)?.username ?? gettext("A member");
    this._say(
      interpolate(
        gettext(
          "%(agent)s left the call with %(name)s, who had added it. Add it again to continue.",
        ),
        { agent, name },
      ),
    );
  }
}
