/** The menu of the actions on a chat in the list, shared by all chats. */

import { ActionMenu } from "../actions/action-menu.js";
import { CHAT_ACTIONS } from "./chat-acts.js";
import { gettext } from "../words.js";

/** @extends {ActionMenu<import("../store/chat.js").Chat>} */
export class ChatMenu extends ActionMenu {
  label = gettext("Chat");
  testId = "chat-menu";

  /** @param {import("../store/chat.js").Chat} chat */
  actions(chat) {
    return CHAT_ACTIONS.filter(({ isOffered }) => !isOffered || isOffered(chat));
  }
}
customElements.define("chat-menu", ChatMenu);
