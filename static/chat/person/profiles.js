/** The profiles of chat members: a live change may be newer than a fetched chat. */

import { people } from "./looks.js";

/** @typedef {import("../store/chat.js").Chat} Chat */
/** @typedef {import("./looks.js").Profile} Profile */

export class Profiles {
  constructor() {
    /** @type {Map<string, number>} when a person's last live change arrived, by username */
    this._changedAt = new Map();
  }

  /**
   * Apply a live change of a profile.
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

  /**
   * Record the members of a chat whose read began at a time.
   * @param {Chat} chat @param {number} began
   */
  apply({ participants }, began) {
    for (const member of participants) {
      const isOld = member.kind === "user" && (this._changedAt.get(member.name) ?? 0) > began;
      if (isOld) Object.assign(member, people.profile(member.name));
    }
    people.learn(participants);
  }
}
