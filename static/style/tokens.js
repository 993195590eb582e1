/**
 * Shows the design tokens as computed by the browser: each pair of colours in both schemes, with
 * its contrast.
 */

import { View } from "../chat/view.js";
import { contrast } from "../chat/person/looks.js";
import { html } from "../vendor/lit/lit.js";

/** Contrasts required by WCAG 2.2 AA: of text, and of essential graphics. */
const TEXT = 4.5;
const SHAPE = 3;
const TONES = 12;
const CODE = ["keyword", "name", "string", "number", "comment", "tag"];

/**
 * Foregrounds, their backgrounds, and the contrast that each pair needs.
 * @type {[string, string, number][]}
 */
const PAIRS = [
  ...["bg", "side", "raised", "hover", "selected", "mine", "code"].map(
    (ground) => /** @type {[string, string, number]} */ (["text", ground, TEXT]),
  ),
  ...["bg", "side", "raised", "hover", "code"].map(
    (ground) => /** @type {[string, string, number]} */ (["muted", ground, TEXT]),
  ),
  ...["bg", "side", "raised", "mine"].map(
    (ground) => /** @type {[string, string, number]} */ (["accent-text", ground, TEXT]),
  ),
  ["on-accent", "accent", TEXT],
  ["on-accent", "accent-hover", TEXT],
  ["danger", "bg", TEXT],
  ["danger", "raised", TEXT],
  ["danger", "danger-soft", TEXT],
  ["ok", "raised", TEXT],
  ["on-warn", "warn-soft", TEXT],
  ["accent", "bg", SHAPE],
  ["accent", "raised", SHAPE],
  ["edge", "bg", SHAPE],
  ["edge", "raised", SHAPE],
  ["online", "side", SHAPE],
  ...CODE.map((name) => /** @type {[string, string, number]} */ ([`hl-${name}`, "code", TEXT])),
  ...Array.from(
    { length: TONES },
    (_, tone) => /** @type {[string, string, number]} */ (["on-tone", `tone-${tone}`, TEXT]),
  ),
];

/** Tokens that are single lengths, by what they measure. */
const LENGTHS = {
  Text: [
    "text-tiny",
    "text-fine",
    "text-small",
    "text-medium",
    "text-body",
    "text-large",
    "text-heading",
  ],
  Space: ["space-1", "space-2", "space-3", "space-4", "space-6"],
  Radius: ["radius-small", "radius-medium", "radius", "radius-large"],
  Motion: ["fast", "slow"],
};
const SCHEMES = { light: "Light", dark: "Dark" };
const WORDS = {
  title: "Aa",
  pairs: "Colours",
  low: "too low",
  sample: "The quick brown fox",
  play: "Play",
};

/** @param {string} colour as the browser computes it: rgb(1, 2, 3) @returns {string} as #rrggbb */
const hex = (colour) =>
  `#${(colour.match(/\d+/g) ?? [])
    .slice(0, 3)
    .map((part) => Number(part).toString(16).padStart(2, "0"))
    .join("")}`;

class DesignTokens extends View {
  static properties = { _isMoving: { state: true } };

  constructor() {
    super();
    this._isMoving = false;
  }

  render() {
    return html`<h3>${WORDS.pairs}</h3>
      <div class="style-schemes">
        ${Object.entries(SCHEMES).map(
          ([scheme, name]) =>
            html`<section class="style-scheme is-${scheme}" aria-label=${name}>
              <h4>${name}</h4>
              <ul class="style-pairs">
                ${PAIRS.map(
                  ([ink, ground, least]) =>
                    html`<li
                      class="style-pair"
                      data-ink=${ink}
                      data-ground=${ground}
                      data-least=${least}
                    >
                      <span class="style-swatch" aria-hidden="true"
                        >${least === TEXT ? WORDS.title : html`<i></i>`}</span
                      ><span>${`${ink} / ${ground}`}</span><b class="style-ratio"></b>
                    </li>`,
                )}
              </ul>
            </section>`,
        )}
      </div>
      ${Object.entries(LENGTHS).map(
        ([kind, names]) =>
          html`<h3>${kind}</h3>
            <ul class="style-lengths is-${kind.toLowerCase()}" data-kind=${kind}>
              ${names.map(
                (name) =>
                  html`<li data-token=${name}>
                    <code>${`--${name}`}</code><span class="style-value"></span
                    ><span
                      class="style-measure ${this._isMoving ? "is-moving" : ""}"
                      aria-hidden="true"
                      >${kind === "Text" ? WORDS.sample : ""}</span
                    >
                  </li>`,
              )}
            </ul>
            ${
              kind === "Motion"
                ? html`<button
                    type="button"
                    class="button"
                    @click=${() => {
                      this._isMoving = !this._isMoving;
                    }}
                  >
                    ${WORDS.play}
                  </button>`
                : ""
            }`,
      )}`;
  }

  async updated() {
    const pairs = Array.from(
      /** @type {NodeListOf<HTMLElement>} */ (this.querySelectorAll(".style-pair")),
    );
    for (const pair of pairs) this._paint(pair);
    const values = getComputedStyle(document.documentElement);
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (
      this.querySelectorAll("[data-token]")
    )) {
      const { token = "" } = row.dataset;
      /** @type {HTMLElement} */ (row.querySelector(".style-value")).textContent =
        values.getPropertyValue(`--${token}`);
      /** @type {HTMLElement} */ (row.querySelector(".style-measure")).style.setProperty(
        "--token",
        `var(--${token})`,
      );
    }
    await new Promise(requestAnimationFrame);
    for (const pair of pairs) this._measure(pair);
  }

  /** @param {HTMLElement} pair */
  _paint(pair) {
    const { ink = "", ground = "" } = pair.dataset;
    const { style } = /** @type {HTMLElement} */ (pair.querySelector(".style-swatch"));
    style.setProperty("--ink", `var(--${ink})`);
    style.setProperty("--ground", `var(--${ground})`);
  }

  /** Show the contrast of a pair as rendered by the browser. @param {HTMLElement} pair */
  _measure(pair) {
    const { least = "" } = pair.dataset;
    const { color, backgroundColor } = getComputedStyle(
      /** @type {HTMLElement} */ (pair.querySelector(".style-swatch")),
    );
    const ratio = contrast(hex(color), hex(backgroundColor));
    const isLow = ratio < Number(least);
    pair.classList.toggle("is-low", isLow);
    /** @type {HTMLElement} */ (pair.querySelector(".style-ratio")).textContent =
      `${ratio.toFixed(1)}${isLow ? ` ${WORDS.low}` : ""}`;
  }
}
customElements.define("design-tokens", DesignTokens);
