/**
 * How the members of chats are shown: a live change of a profile may be newer than what was read of
 * a chat.
 */

import { people } from "./looks.js";

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("./looks.js").Profile} Profile */

export class Profiles {
  constructor() {
    /** @type {Map<string, number>} when the last live change of a person came, by username */
    this._changedAt = new Map();
  }

  /**
   * A person is shown differently from now on.
   * @param {Iterable<Chat>} chats
   * @param {{username: string, profile: Profile, at: number}} event
   */
  take(chats, { username, profile, at }) {
    this._changedAt.set(username, at);
    people.learn([{ ...profile, kind: "user", username }]);
    for (const { participants } of chats) {
      for (const member of participants) {
        if (member.kind === "user" && member.name === username) {
          Object.assign(member, people.profile(username));
        }
      }
    }
  }

  /** Learn the members of a chat that began to be read. @param {Chat} chat @param {number} began */
  apply({ participants }, began) {
    for (const member of participants) {
      const isOld = member.kind === "user" && (this._changedAt.get(member.name) ?? 0) > began;
      if (isOld) Object.assign(member, people.profile(member.name));
    }
    people.learn(participants);
  }
}
