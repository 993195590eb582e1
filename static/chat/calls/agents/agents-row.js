/**
 * The agents of the call, below its people: what each is doing, the controls for talking to it, and
 * the agents that could be added, with their prices.
 */

import { calls, me, store } from "../../context.js";
import { announce } from "../../dom.js";
import { decidePayments } from "../../cards/payment-decisions.js";
import "../../cards/payment-card.js";
import { payerText, priceText } from "../../money/price.js";
import { View, face, glyph } from "../../view.js";
import { html, nothing, repeat } from "../../../vendor/lit/lit.js";
import { gettext, interpolate } from "../../words.js";

/** A shorter press is a click: recording then ends with the next press. */
const HELD_MS = 350;

/** @type {Record<import("./agent-turns.js").State, string>} */
const STATES = {
  listens: gettext("listening"),
  thinks: gettext("thinking…"),
  waits: gettext("waiting for payment or approval"),
  speaks: gettext("speaking"),
};

/** @typedef {import("./call-agents.js").CallAgent} CallAgent */
/** @typedef {import("../../store/chat.js").Participant} Participant */

class AgentsRow extends View {
  constructor() {
    super();
    this._pressedAt = 0;
    this._onChange = () => this.requestUpdate();
    /** @type {Map<string, string>} states that were announced, by name */
    this._announced = new Map();
    decidePayments(this, { session: () => this._session, say: announce });
  }

  connectedCallback() {
    super.connectedCallback();
    calls.addEventListener("change", this._onChange);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    calls.removeEventListener("change", this._onChange);
  }

  get _chat() {
    return calls.active ? store.get(calls.active.chatId) : undefined;
  }

  get _session() {
    return this._chat ? store.session(this._chat) : null;
  }

  /** The agents that could be added. @returns {Participant[]} */
  get _candidates() {
    const there = calls.active?.agents.joined.map(({ agent }) => agent) ?? [];
    return (this._chat?.participants ?? []).filter(
      ({ kind, name, takes_calls: takes }) => kind === "agent" && takes && !there.includes(name),
    );
  }

  render() {
    const { active } = calls;
    const isRunning = calls.current?.state === "running";
    const candidates = isRunning ? this._candidates : [];
    if (!active?.joined || !(active.agents.joined.length || candidates.length)) return nothing;
    return html`<ul class="call-agents" aria-label=${gettext("Agents in the call")}>
        ${repeat(
          active.agents.joined,
          ({ agent }) => agent,
          (one) => this._agent(one),
        )}
      </ul>
      ${this._payments(active)} ${candidates.length ? this._add(candidates) : nothing}`;
  }

  /** @param {CallAgent} one */
  _agent(one) {
    const { active } = calls;
    const { agent: name, host } = one;
    const state = active?.agents.stateOf(name) ?? "listens";
    const hosted = active?.agents.host?.agents.get(name);
    const through = calls.current?.members.find(({ user_id: id }) => id === host)?.username ?? "";
    return html`<li
      class="call-agent is-${state}"
      data-testid="call-agent"
      data-name=${name}
      data-state=${state}
    >
      <span class="call-member ${state === "speaks" ? "is-speaking" : ""}"
        >${face(name, "agent")}</span
      >
      <span class="call-text"
        ><b dir="auto">${name}</b
        ><small
          >${STATES[state]}${
            host === me.id
              ? ""
              : ` · ${interpolate(gettext("added by %(name)s"), { name: through })}`
          }</small
        ></span
      >
      ${hosted ? this._speaking(name, hosted) : this._takeOver(name)}
      <button
        type="button"
        class="icon-button"
        data-testid="remove-agent"
        aria-label=${interpolate(gettext("Remove %(name)s from the call"), { name })}
        title=${interpolate(gettext("Remove %(name)s from the call"), { name })}
        @click=${() => active?.agents.remove(name)}
      >
        ${glyph("close")}
      </button>
    </li>`;
  }

  /**
   * The controls with which the host talks to an agent.
   * @param {string} name
   * @param {import("./agent-host.js").HostedAgent} hosted
   */
  _speaking(name, { isHandsFree, detector }) {
    const host = calls.active?.agents.host;
    const label = detector.isHeld ? gettext("Send") : gettext("Talk");
    return html`<button
        type="button"
        class="button call-free"
        data-testid="hands-free"
        aria-pressed=${String(isHandsFree)}
        title=${interpolate(
          gettext(
            "%(name)s answers after each pause; when off, it answers only what you say with Talk",
          ),
          { name },
        )}
        @click=${() => host?.setHandsFree(name, !isHandsFree)}
      >
        ${gettext("Hands-free")}
      </button>
      <button
        type="button"
        class="button call-talk ${detector.isHeld ? "is-held" : ""}"
        data-testid="talk"
        aria-label=${interpolate(
          detector.isHeld
            ? gettext("Send what was said to %(name)s")
            : gettext("Talk to %(name)s: hold, or press once to start and once to stop"),
          { name },
        )}
        @pointerdown=${() => this._press(name)}
        @pointerup=${() => this._lift(name)}
        @pointercancel=${() => this._lift(name)}
        @keydown=${(/** @type {KeyboardEvent} */ event) =>
          this._key(event, () => this._press(name))}
        @keyup=${(/** @type {KeyboardEvent} */ event) => this._key(event, () => this._lift(name))}
      >
        ${glyph("microphone")}${label}
      </button>`;
  }

  /** @param {string} name */
  _takeOver(name) {
    return html`<button
      type="button"
      class="button"
      data-testid="take-over"
      title=${this._terms(name)}
      @click=${() => calls.active?.agents.add(name)}
    >
      ${gettext("Take over")}
    </button>`;
  }

  /** The price of an agent and its payer, shown before adding it. @param {string} name */
  _terms(name) {
    const chat = this._chat;
    const agent = chat?.participants.find((one) => one.kind === "agent" && one.name === name);
    if (!chat || !agent) return "";
    return agent.pricing
      ? `${priceText(agent.pricing)} — ${payerText(chat)}.`
      : gettext("Its answers are free.");
  }

  /** @param {Participant[]} candidates */
  _add(candidates) {
    return html`<details
      class="call-add"
      @keydown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this._close()}
    >
      <summary class="button" data-testid="choose-agent">
        ${glyph("add")}${gettext("Add an agent to the call")}
      </summary>
      <p>
        ${gettext(
          "Its model receives what everyone in the call says unless they are muted. What is said to it, and its answers, appear in the chat.",
        )}
      </p>
      ${candidates.map(
        ({ name }) =>
          html`<p class="call-offer">
            <span
              ><b dir="auto">${name}</b>
              <small data-testid="agent-terms">${this._terms(name)}</small></span
            >
            <button
              type="button"
              class="button button-primary"
              data-testid="add-agent"
              data-name=${name}
              aria-label=${interpolate(gettext("Add %(name)s to the call"), { name })}
              @click=${() => this._addAgent(name)}
            >
              ${gettext("Add")}
            </button>
          </p>`,
      )}
    </details>`;
  }

  /**
   * The payments that agents hosted by this page ask for; their chat may not be open to show them.
   * @param {import("../types.js").Active} active
   */
  _payments(active) {
    const payments = (this._session?.payments.list ?? []).filter(({ responseId }) =>
      active.agents.isAnswer(responseId),
    );
    return payments.map(
      (payment) => html`<payment-card .payment=${{ ...payment }}></payment-card>`,
    );
  }

  /** @param {string} name */
  _addAgent(name) {
    this._close();
    calls.active?.agents.add(name);
  }

  _close() {
    const choice = this.querySelector("details");
    if (!choice?.open) return;
    choice.open = false;
    choice.querySelector("summary")?.focus();
  }

  /** @param {string} name */
  _press(name) {
    const host = calls.active?.agents.host;
    if (host?.agents.get(name)?.detector.isHeld) {
      this._pressedAt = 0;
      host.release(name);
    } else {
      this._pressedAt = performance.now();
      host?.hold(name);
    }
  }

  /** @param {string} name */
  _lift(name) {
    if (this._pressedAt && performance.now() - this._pressedAt >= HELD_MS)
      calls.active?.agents.host?.release(name);
  }

  /** @param {KeyboardEvent} event @param {() => void} act */
  _key(event, act) {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) act();
  }

  /** Announce what agents start doing, for users who do not see it. */
  updated() {
    for (const { agent } of calls.active?.agents.joined ?? []) {
      const state = calls.active?.agents.stateOf(agent) ?? "listens";
      const before = this._announced.get(agent);
      this._announced.set(agent, state);
      if (before === undefined)
        announce(interpolate(gettext("%(name)s is in the call"), { name: agent }));
      else if (before !== state && state === "waits") announce(`${agent} ${STATES.waits}`);
    }
    for (const name of this._announced.keys())
      if (!calls.active?.agents.joined.some(({ agent }) => agent === name))
        this._announced.delete(name);
  }
}
customElements.define("agents-row", AgentsRow);
