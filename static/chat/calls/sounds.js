/**
 * The sound of the participants of a call: an audio element for each person, and one for the agents
 * that a person hosts.
 */

/**
 * @param {Map<string, HTMLAudioElement>} sounds
 * @param {string} key the user id; for agents, `agents ` and their host's
 * @param {MediaStream} stream
 */
export function playSound(sounds, key, stream) {
  const sound = sounds.get(key) ?? new Audio();
  sound.autoplay = true;
  sound.srcObject = stream;
  sound.play().catch(() => {
    // Browsers that block autoplay allow playback after a click.
    addEventListener("click", () => sound.play().catch(() => {}), { once: true });
  });
  sounds.set(key, sound);
}

/**
 * Stop the sound of a person and of their agents.
 * @param {Map<string, HTMLAudioElement>} sounds
 * @param {string} userId
 */
export function silence(sounds, userId) {
  for (const key of [userId, `agents ${userId}`]) {
    const sound = sounds.get(key);
    if (sound) sound.srcObject = null;
    sounds.delete(key);
  }
}
