/**
 * The arrows of a regenerated answer: each reader sees the version that they choose, at first the
 * newest.
 */

import { attempt, versionsOf } from "../actions/acts.js";
import { pageAt } from "../context.js";
import { announce } from "../dom.js";
import { entryOf } from "../store/entry.js";
import { Selected } from "../store/store.js";
import { withActs } from "../store/window.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 */

/**
 * Fires (bubbling) `version` with the version to show, null for the newest. The versions are loaded
 * when the arrows come into view.
 */
class MessageVersions extends View {
  static properties = {
    entry: { attribute: false },
    _former: { state: true },
    _at: { state: true },
  };

  constructor() {
    super();
    /** @type {Entry|undefined} */
    this.entry = undefined;
    /** @type {Entry[]|null} those before the newest, oldest first */
    this._former = null;
    this._at = -1;
    /**
     * The acts already applied to the former versions.
     * @type {import("../../uamp/types.js").Frame[]|null}
     */
    this._applied = null;
    /** @type {IntersectionObserver|null} */
    this._sight = null;
    this._acts = new Selected(this, pageAt, ({ acts }) => acts);
  }

  connectedCallback() {
    super.connectedCallback();
    this._sight = new IntersectionObserver((seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
      this._sight?.disconnect();
      this._read();
    });
    this._sight.observe(this);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._sight?.disconnect();
  }

  /** Apply later acts, such as a deletion, to the former versions. */
  willUpdate() {
    if (!this._former || this._applied === this._acts.value) return;
    this._applied = this._acts.value;
    const before = this._former[this._at];
    this._former = withActs(pageAt(this).state, this._former);
    const now = this._former[this._at];
    if (now !== before) this._show(now);
  }

  async _read() {
    const { entry } = this;
    if (!entry) return;
    await attempt(this, async () => {
      /** @type {object[]} */
      const versions = await versionsOf(entry);
      // Newer versions have rows of their own.
      const former = versions.map((row) => entryOf(row)).filter(({ seq }) => seq < entry.seq);
      this._former = former;
      this._at = former.length;
    });
  }

  render() {
    if (!this._former)
      return html`<span class="mark" data-testid="answered-again">${gettext("Regenerated")}</span>`;
    const count = this._former.length + 1;
    const at = this._at;
    const place = interpolate(gettext("%(n)s of %(count)s"), { n: at + 1, count });
    return html`<span
      class="versions"
      role="group"
      aria-label=${gettext("Versions of the answer")}
      data-testid="versions"
    >
      ${this._arrow(gettext("Earlier version"), "is-back", "version-before", at - 1, at === 0)}<span
        data-testid="version"
        >${place}</span
      >${this._arrow(gettext("Later version"), "", "version-after", at + 1, at === count - 1)}</span
    >`;
  }

  /**
   * A disabled arrow at an end keeps the focus and does nothing.
   * @param {string} label
   * @param {string} name
   * @param {string} testId
   * @param {number} to
   * @param {boolean} isEnd
   */
  _arrow(label, name, testId, to, isEnd) {
    return html`<button
      type="button"
      class="icon-button version-arrow ${name}"
      aria-label=${label}
      title=${label}
      aria-disabled=${isEnd ? "true" : nothing}
      data-testid=${testId}
      @click=${() => (isEnd ? undefined : this._choose(to))}
    >
      ${glyph("chevron")}
    </button>`;
  }

  /** @param {number} at */
  _choose(at) {
    const former = this._former || [];
    this._at = at;
    this._show(former[at]);
    announce(
      interpolate(gettext("Version %(n)s of %(count)s"), { n: at + 1, count: former.length + 1 }),
    );
  }

  /** @param {Entry|undefined} former */
  _show(former) {
    this.dispatchEvent(new CustomEvent("version", { bubbles: true, detail: former || null }));
  }
}
customElements.define("message-versions", MessageVersions);
