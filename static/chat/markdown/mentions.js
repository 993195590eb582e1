/**
 * Mentions in markdown: `@name` is isolated in texts of the other direction.
 * `chat_app/markdown_rules.py` has the same rule. Knows no DOM.
 */

import { MENTION } from "../store/mentions.js";

/**
 * Split a text into tokens.
 * @param {import("./types.js").CoreState} state
 * @param {import("./types.js").Token} token
 */
function pieces(state, token) {
  const { content } = token;
  /** @type {import("./types.js").Token[]} */
  const tokens = [];
  let from = 0;
  /** @param {string} type @param {string} text */
  const add = (type, text) => {
    if (text)
      tokens.push(
        Object.assign(new state.Token(type, "", 0), { content: text, level: token.level }),
      );
  };
  for (const { index, 0: mention } of content.matchAll(MENTION)) {
    // A full stop after the name ends the sentence.
    const name = mention.replace(/[.-]+$/, "");
    add("text", content.slice(from, index));
    add("mention", name);
    from = index + name.length;
  }
  add("text", content.slice(from));
  return tokens;
}

/** A rule for the tokens of a whole text. @param {import("./types.js").CoreState} state */
function mentions(state) {
  for (const token of state.tokens) {
    if (token.type !== "inline" || !/[@\uff20]/.test(token.content)) continue;
    token.children = (token.children ?? []).flatMap((child) =>
      child.type === "text" && /[@\uff20]/.test(child.content) ? pieces(state, child) : [child],
    );
  }
}

/** @param {any} parser of markdown-it */
export function addMentions(parser) {
  const { escapeHtml } = parser.utils;
  parser.core.ruler.push("mentions", mentions);
  parser.renderer.rules.mention = (
    /** @type {import("./types.js").Token[]} */ tokens,
    /** @type {number} */ at,
  ) => `<bdi class="mention">${escapeHtml(tokens[at].content)}</bdi>`;
}
