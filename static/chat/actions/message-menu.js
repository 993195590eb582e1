/** The menu of the actions on a message, shared by all messages. */

import { ActionMenu } from "./action-menu.js";
import { actionsFor } from "./actions.js";
import { gettext } from "../words.js";

/** @extends {ActionMenu<import("../store/entry.js").Entry>} */
export class MessageMenu extends ActionMenu {
  label = gettext("Message");
  testId = "message-menu";

  /** @param {import("../store/entry.js").Entry} entry */
  actions(entry) {
    return actionsFor(entry);
  }
}
customElements.define("message-menu", MessageMenu);
