/**
 * The appearance of people, agents and chats: the picture, emoji or initials, and the colour. Knows
 * no document.
 */

const TONES = 12;

/**
 * @typedef {object} Profile the public profile of a person
 * @property {string} [display_name]
 * @property {string} [status_text]
 * @property {string} [avatar_emoji]
 * @property {string} [avatar_colour] as #rrggbb
 * @property {string|null} [avatar_url]
 *
 * @typedef {object} Look the ingredients of an avatar
 * @property {string} text an emoji or initials
 * @property {boolean} isEmoji
 * @property {number} tone
 * @property {string} colour as #rrggbb; "" for the tone
 * @property {boolean} isInkDark on the colour
 * @property {string} url of a picture; "" without one
 */

/** @param {string} text */
function hashOf(text) {
  // FNV-1a, so that names that differ in one letter have unrelated hashes.
  let hash = 0x811c9dc5;
  for (const character of text)
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** @param {string} text @returns {string[]} user-perceived characters */
const characters = (text) =>
  Array.from(
    new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text),
    ({ segment }) => segment,
  );

/**
 * Up to two letters: of the first two words, else the first two of the word.
 * @param {string} name
 */
export function initialsOf(name) {
  const words = name.split(/[\s._\-@,]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const letters = (/** @type {string} */ word) =>
    characters(word).filter((one) => /[\p{L}\p{N}]/u.test(one));
  const chosen =
    words.length > 1
      ? [letters(words[0])[0], letters(words[1])[0]]
      : letters(words[0] ?? "").slice(0, 2);
  return chosen.join("").toUpperCase() || "?";
}

/** @param {string} colour as #rrggbb @returns {number} its relative luminance (WCAG 2.2) */
export function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {string} one @param {string} other @returns {number} their contrast (WCAG 2.2) */
export function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * @param {string} name
 * @param {Profile} [profile]
 * @param {string} [seed] determines the colour, which a renamed chat keeps
 * @returns {Look}
 */
export function lookOf(name, profile = {}, seed = name) {
  const hash = hashOf(seed);
  const emoji = profile.avatar_emoji || "";
  const colour = /^#[0-9a-f]{6}$/.test(profile.avatar_colour || "")
    ? String(profile.avatar_colour)
    : "";
  return {
    text: emoji || initialsOf(profile.display_name || name),
    isEmoji: emoji !== "",
    tone: hash % TONES,
    colour,
    isInkDark: colour !== "" && contrast(colour, "#111111") > contrast(colour, "#ffffff"),
    url: profile.avatar_url || "",
  };
}

/**
 * The picture of a chat as a profile: an emoji, a colour, or the address of a picture.
 * @param {{avatar?: string|null, avatar_url?: string|null}} chat
 * @returns {Profile}
 */
export function profileOfChat({ avatar, avatar_url: url }) {
  if (!avatar || avatar.startsWith("content:")) return { avatar_url: url };
  return avatar.startsWith("#") ? { avatar_colour: avatar } : { avatar_emoji: avatar };
}

/** The profiles that the page knows, by username. */
export class People extends EventTarget {
  constructor() {
    super();
    /** @type {Map<string, Profile>} */
    this._known = new Map();
  }

  /**
   * Record profiles. Fires `change` if one looks different now.
   * @param {(Profile & {kind?: string, name?: string, username?: string})[]} list members of chats,
   *   or people
   */
  learn(list) {
    let isChanged = false;
    for (const {
      kind = "user",
      name,
      username = name,
      display_name = "",
      status_text = "",
      avatar_emoji = "",
      avatar_colour = "",
      avatar_url = null,
    } of list) {
      if (kind !== "user" || !username) continue;
      const profile = { display_name, status_text, avatar_emoji, avatar_colour, avatar_url };
      const known = this._known.get(username);
      if (known && JSON.stringify(known) === JSON.stringify(profile)) continue;
      this._known.set(username, profile);
      isChanged = true;
    }
    if (isChanged) this.dispatchEvent(new Event("change"));
  }

  /** @param {string} username @returns {Profile} */
  profile(username) {
    return this._known.get(username) ?? {};
  }

  /** The display name of a person. @param {string} username */
  nameOf(username) {
    return this.profile(username).display_name || username;
  }
}

/** The people of this page. */
export const people = new People();
