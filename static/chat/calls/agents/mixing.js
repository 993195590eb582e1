/**
 * Selects whose sound the agents of a call receive, and whose names accompany it. Knows no
 * document.
 */

/**
 * The streams mixed for the agents: this page's microphone and the other people's, but no agents,
 * so that agents do not answer each other.
 * @template Stream
 * @param {{id: string, stream: Stream}} own
 * @param {Iterable<{userId: string, state: string, stream: Stream}>} peers
 * @returns {Map<string, Stream>} by user id
 */
export function streamsForAgents(own, peers) {
  const streams = new Map([[own.id, own.stream]]);
  for (const { userId, state, stream } of peers)
    if (state === "connected") streams.set(userId, stream);
  return streams;
}

/**
 * The names of the speakers in an utterance; none if the sending user spoke alone.
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
 * Compares the mixed streams with the wanted ones.
 * @template Stream
 * @param {Map<string, Stream>} now @param {Map<string, Stream>} wanted
 * @returns {{gone: string[], come: string[]}} ids; one with a replaced stream is in both
 */
export function changesOf(now, wanted) {
  return {
    gone: [...now.keys()].filter((id) => now.get(id) !== wanted.get(id)),
    come: [...wanted.keys()].filter((id) => now.get(id) !== wanted.get(id)),
  };
}
