/** Types of calls on the page. */

/**
 * @typedef {{user_id: string, username: string, state: string, joined_at?: number, rings_until?:
 *   number}} Member
 * @typedef {{call_id: string, chat_id: string, state: string, revision: number, started_by?:
 *   string, answered_at?: number, started_at: number, members: Member[], agents?:
 *   import("./agents/call-agents.js").CallAgent[]}} Call
 *
 * @typedef {object} Active the call that this page is in
 * @property {string} chatId
 * @property {string} callId "" until it is known
 * @property {boolean} joined whether the server has said so
 * @property {boolean} muted
 * @property {string} deviceId
 * @property {MediaStream} stream
 * @property {import("./mesh.js").Mesh} mesh
 * @property {import("./levels.js").Levels} levels
 * @property {Map<string, HTMLAudioElement>} sounds by user id; those of agents by `agents ` and
 *   their host's
 * @property {import("./agents/call-agents.js").CallAgents} agents
 * @property {AbortController} gone
 * @property {boolean} mayBegin whether the page starts a call if the one that it joins has ended
 * @property {number} timer
 */

export {};
