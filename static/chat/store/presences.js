/** Who is online: the last live event of each member, which may be newer than a fetched chat. */

/** @typedef {import("./chat.js").Chat} Chat */

export class Presences {
  constructor() {
    /** @type {Map<string, {online: boolean, at: number}>} by the kind and id of the member */
    this._of = new Map();
  }

  /**
   * A member came or went.
   * @param {Iterable<Chat>} chats
   * @param {{kind: string, id: string, online: boolean, at: number}} event
   */
  take(chats, { kind, id, online, at }) {
    this._of.set(`${kind}:${id}`, { online, at });
    for (const { participants } of chats) {
      for (const member of participants) {
        if (member.kind === kind && String(member.id) === id) member.online = online;
      }
    }
  }

  /**
   * Apply who came or went since the read of a chat began.
   * @param {Chat} chat @param {number} began
   */
  apply(chat, began) {
    for (const member of chat.participants) {
      const live = this._of.get(`${member.kind}:${member.id}`);
      if (live && live.at > began) member.online = live.online;
    }
  }
}
