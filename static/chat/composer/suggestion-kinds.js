/** The suggestions of the composer: members after "@", commands after "/". */

import { UNFINISHED } from "../store/mentions.js";
import { COMMANDS } from "./commands.js";
import { mentionable } from "./mentionable.js";
import { gettext } from "../words.js";

/** @param {() => import("../store/chat.js").Chat|undefined} chat that is open */
export const kinds = (chat) => [
  { label: gettext("Mention"), pattern: UNFINISHED, all: () => mentionable(chat()) },
  {
    label: gettext("Commands"),
    pattern: /^\/([a-z]*)$/,
    all: () => COMMANDS.map(({ name, note }) => ({ name, note })),
  },
];
