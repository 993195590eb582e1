/** An agent's price and its payer, in words: shown before anything is sent. */

import { formatExact, units } from "./amounts.js";
import { me } from "../context.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {object} Pricing decimal strings
 * @property {string} currency
 * @property {string} per_answer
 * @property {string} input_per_1k
 * @property {string} output_per_1k
 * @property {string|null} [audio_input_per_1k] if sound tokens have their own price
 * @property {string|null} [audio_output_per_1k]
 * @property {Record<string, string>} tools
 * @property {"whole"|"share"} unfinished how much of an answer's price is due when it is stopped
 * @property {number|null} expected_tokens
 */

/** @param {string|null|undefined} price */
const isSomething = (price) => Boolean(price) && units(price ?? "") > 0n;

/**
 * @param {Pricing|null|undefined} pricing
 * @returns {string[]} one entry for each priced unit
 */
function priceParts(pricing) {
  if (!pricing) return [];
  const {
    currency,
    per_answer: answer,
    input_per_1k: input,
    output_per_1k: output,
    tools = {},
  } = pricing;
  const parts = [];
  if (isSomething(answer))
    parts.push(
      interpolate(gettext("%(price)s per answer"), { price: formatExact(answer, currency) }),
    );
  if (isSomething(input) && input === output)
    parts.push(
      interpolate(gettext("%(price)s per 1,000 tokens"), { price: formatExact(input, currency) }),
    );
  else {
    if (isSomething(input))
      parts.push(
        interpolate(gettext("%(price)s per 1,000 input tokens"), {
          price: formatExact(input, currency),
        }),
      );
    if (isSomething(output))
      parts.push(
        interpolate(gettext("%(price)s per 1,000 output tokens"), {
          price: formatExact(output, currency),
        }),
      );
  }
  if (isSomething(pricing.audio_input_per_1k))
    parts.push(
      interpolate(gettext("%(price)s per 1,000 audio input tokens"), {
        price: formatExact(pricing.audio_input_per_1k ?? "", currency),
      }),
    );
  if (isSomething(pricing.audio_output_per_1k))
    parts.push(
      interpolate(gettext("%(price)s per 1,000 audio output tokens"), {
        price: formatExact(pricing.audio_output_per_1k ?? "", currency),
      }),
    );
  for (const [tool, price] of Object.entries(tools)) {
    if (isSomething(price))
      parts.push(
        interpolate(gettext("%(price)s per %(tool)s call"), {
          price: formatExact(price, currency),
          tool,
        }),
      );
  }
  return parts;
}

/**
 * The price of an answer stopped midway; "" if only tokens and tools cost.
 * @param {Pricing|null|undefined} pricing
 */
function stoppedText(pricing) {
  if (!pricing || !isSomething(pricing.per_answer)) return "";
  return pricing.unfinished === "share"
    ? `, ${gettext("charged in part if stopped")}`
    : `, ${gettext("charged in full even if stopped")}`;
}

/**
 * "$0.02 an answer + $0.10 per 1,000 tokens, by share if stopped", or "" for an agent that is free.
 * @param {Pricing|null|undefined} pricing
 */
export const priceText = (pricing) => priceParts(pricing).join(" + ") + stoppedText(pricing);

/**
 * The price of one call of a tool, in words; "" if it is free.
 * @param {Pricing|null|undefined} pricing
 * @param {string} tool
 */
export function toolPriceText(pricing, tool) {
  const price = pricing?.tools?.[tool];
  return pricing && price && isSomething(price) ? formatExact(price, pricing.currency) : "";
}

/** @typedef {import("../store/chat.js").Chat} Chat */

/** Whether the user owns a chat. @param {Chat} chat */
export const ownsChat = (chat) =>
  chat.participants.some((p) => p.kind === "user" && String(p.id) === me.id && p.role === "owner");

/** @type {Record<string, string>} */
export const PAYERS = {
  asker: gettext("The person who asks"),
  owner: gettext("The chat's owner"),
  pool: gettext("The chat's pool"),
  sponsor: gettext("The agent's owner"),
};

/** The payer of a question in a chat, in words: "you pay". @param {Chat} chat */
export function payerText(chat) {
  if (chat.payer === "owner")
    return ownsChat(chat)
      ? gettext("you pay, as the chat's owner")
      : gettext("the chat's owner pays");
  if (chat.payer === "pool") return gettext("the chat's pool pays");
  return chat.payer === "sponsor" ? gettext("the agent's owner pays") : gettext("you pay");
}

/**
 * The priced agents that a text would make answer.
 * @param {Chat} chat
 * @param {string} text
 */
function pricedFor(chat, text) {
  const named = new Set(
    Array.from(text.matchAll(/@([\w.-]+)/g), ([, name]) =>
      name.toLowerCase().replace(/[.-]+$/, ""),
    ),
  );
  return chat.participants.filter(
    (p) =>
      p.kind === "agent" &&
      p.pricing &&
      (named.has(p.name.toLowerCase()) || p.trigger === "always"),
  );
}

/**
 * Describes the cost of a text and its payer, for the line below the composer; "" if it is free.
 * @param {Chat} chat
 * @param {string} text in the composer
 */
export function costLine(chat, text) {
  const costs = pricedFor(chat, text).map((agent) => `${agent.name}: ${priceText(agent.pricing)}`);
  return costs.length ? `${costs.join("; ")} — ${payerText(chat)}.` : "";
}
