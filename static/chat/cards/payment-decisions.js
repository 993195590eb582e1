/** Handles decisions on payment cards: pay, allow an amount from now on, or cancel the answer. */

import { formatDue, units } from "../money/amounts.js";
import { isApiError } from "../api.js";
import { api } from "../context.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../../uamp/payments.js").Payment} Payment
 * @typedef {import("./payment-card.js").PaymentCard} PaymentCard
 * @typedef {CustomEvent<{payment: Payment, upTo: string}>} Decision the event of a card
 *
 * @typedef {object} Place
 * @property {() => import("../../uamp/chat-session.js").ChatSession|null|undefined} session to
 *   pay in
 * @property {(text: string) => void} say shows the person a text
 */

/**
 * Carry out the decisions made on the cards in an element.
 * @param {HTMLElement} element
 * @param {Place} place
 */
export function decidePayments(element, place) {
  element.addEventListener("pay", (event) =>
    pay(place, /** @type {Decision} */ (event).detail.payment),
  );
  element.addEventListener("pay-always", (event) =>
    payAlways(
      place,
      /** @type {PaymentCard} */ (event.target),
      /** @type {Decision} */ (event).detail,
    ),
  );
  element.addEventListener("pay-cancel", (event) =>
    place.session()?.cancel(/** @type {Decision} */ (event).detail.payment.responseId),
  );
}

/** @param {Place} place @param {Payment} shownPayment */
function pay({ session: of, say }, shownPayment) {
  const session = of();
  if (!session) return;
  // The card has a copy; the client keeps the payment itself.
  const payment = session.payments.list.find(({ key }) => key === shownPayment.key);
  if (!payment || payment.state === "sent") return;
  session.pay(payment);
  if (!session.ready)
    say(gettext("You're offline. The payment will be sent once you're back online."));
}

/**
 * @param {Place} place
 * @param {PaymentCard} card
 * @param {{payment: Payment, upTo: string}} decision
 */
async function payAlways(place, card, { payment, upTo }) {
  if (payment.state === "sent") return;
  if (/^\d+(\.\d+)?$/.test(upTo) && units(upTo) < units(payment.amount)) {
    card.say(
      interpolate(gettext("%(agent)s asks for %(amount)s now: allow at least that, or pay once."), {
        agent: payment.agent,
        amount: formatDue(payment.amount, payment.currency),
      }),
    );
    return;
  }
  try {
    const path = `/api/payments/approvals/${encodeURIComponent(payment.agent)}`;
    await api.send("PUT", path, { up_to: upTo, currency: payment.currency });
  } catch (error) {
    if (!isApiError(error)) throw error;
    card.say(error.message);
    return;
  }
  pay(place, payment);
}
