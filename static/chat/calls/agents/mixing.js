/** Whose sound goes to the agents of a call, and whose names stand beside it. Knows no document. */

/**
 * The streams that are mixed for the agents: the own microphone and what comes from other people,
 * and no agent, so that none answers another.
 * @template Stream
 * @param {{id: string, stream: Stream}} own
 * @param {Iterable<{userId: string, state: string, stream: Stream}>} peers
 * @returns {Map<string, Stream>} by user id
 */
export function streamsForAgents(own, peers) {
  const found = new Map([[own.id, own.stream]]);
  for (const { userId, state, stream } of peers)
    if (state === "connected") found.set(userId, stream);
  return found;
}

/**
 * The people whose speech is in an utterance, as they are named beside it; none where the person
 * who sends it spoke alone.
 * @param {string[]} speakers user ids
 * @param {{user_id: string, username: string}[]} members of the call
 * @param {string} meId
 * @returns {string[]}
 */
export function namesBeside(speakers, members, meId) {
  const names = members
    .filter(({ user_id: id }) => speakers.includes(id))
    .map(({ username }) => username);
  return speakers.every((id) => id === meId) ? [] : names;
}

/**
 * What changes between the streams that are mixed and those that should be.
 * @template Stream
 * @param {Map<string, Stream>} now @param {Map<string, Stream>} wanted
 * @returns {{gone: string[], come: string[]}} ids; one whose stream is another one is in both
 */
export function changesOf(now, wanted) {
  return {
    gone: [...now.keys()].filter((id) => now.get(id) !== wanted.get(id)),
    come: [...wanted.keys()].filter((id) => now.get(id) !== wanted.get(id)),
  };
}
