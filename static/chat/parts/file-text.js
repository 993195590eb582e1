/**
 * Decodes a file of unknown encoding: the encoding that fits and yields plausible text is used, and
 * named. Knows no DOM.
 */

/**
 * @typedef {object} FileText
 * @property {string} text
 * @property {string} encoding the name of the detected encoding, "" if the file itself states it
 *
 * @typedef {{label: string, name: string, likeness: (bytes: Uint8Array, text: string) => number}}
 *   Encoding
 */

const PLAUSIBLE = 0.6;
const HALF_KANA = 0.6;
const SURE_CHARS = 12;
const HALF = 0.9;
// By their indexes among the initials, vowels and finals of Hangul.
const TENSE = [1, 4, 8, 10, 13];
const RARE_VOWELS = [3, 10, 11, 15];
const NEVER = [3, 10];
const FINALS = [0, 1, 4, 8, 16, 17, 19, 20, 21];
const LATIN = { label: "windows-1252", name: "Windows-1252" };
// Russian letters in words of one case, or capitalised: text in other scripts would mix cases.
const RUSSIAN =
  /(?<!\p{Script=Cyrillic})[\u0410-\u042F\u0401]?(?:[\u0430-\u044F\u0451]{2,}|[\u0410-\u042F\u0401]+)(?!\p{Script=Cyrillic})/gu;

/**
 * The share of frequent characters among the two-byte ones: each standard lists them first, after
 * its symbols.
 * @param {Uint8Array} bytes
 * @param {(lead: number, trail: number) => boolean} isFrequent
 * @param {(byte: number) => boolean} [isSingle] whether a byte is a character by itself
 */
function share(bytes, isFrequent, isSingle = () => false) {
  let all = 0;
  let frequent = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const lead = bytes[at];
    if (lead < 0x80) continue;
    all += 1;
    if (isSingle(lead)) frequent += HALF_KANA;
    else {
      at += 1;
      if (isFrequent(lead, bytes[at])) frequent += 1;
    }
  }
  return { all, share: all ? frequent / all : 0 };
}

/** @param {number} lead @param {number} from @param {number} to */
const within = (lead, from, to) => lead >= from && lead <= to;

/**
 * The share of syllables frequent in Korean: bytes of Chinese text decode to rare ones.
 * @param {string} text
 */
function syllables(text) {
  const foreign = [...text].filter((sign) => sign > "\x7f");
  const often = foreign.filter((sign) => {
    const index = (sign.codePointAt(0) || 0) - 0xac00;
    if (index < 0 || index >= 11_172) return /[\u3000-\u303f\uff01-\uff5e]/.test(sign);
    const [initial, vowel, final] = [
      Math.floor(index / 588),
      Math.floor((index % 588) / 28),
      index % 28,
    ];
    if (RARE_VOWELS.includes(vowel) || TENSE.includes(initial))
      return (final === 0 || final === 4) && !NEVER.includes(vowel);
    return FINALS.includes(final);
  });
  return foreign.length ? often.length / foreign.length : 0;
}

/**
 * The share of frequent Chinese characters, lowered if all lead bytes are in the first half, as in
 * Korean text.
 * @param {Uint8Array} bytes
 */
function chinese(bytes) {
  let isHalf = true;
  const characters = share(bytes, (lead, trail) => {
    if (lead > 0xc8) isHalf = false;
    return (within(lead, 0xb0, 0xd7) || within(lead, 0xa1, 0xa3)) && trail >= 0xa1;
  });
  return isHalf && characters.all >= SURE_CHARS ? characters.share * HALF : characters.share;
}

/**
 * The share of bytes beyond ASCII that stand alone or in twos, as accented letters do.
 * @param {Uint8Array} bytes
 */
function accents(bytes) {
  let all = 0;
  let lone = 0;
  let run = 0;
  for (let at = 0; at <= bytes.length; at += 1) {
    if (bytes[at] >= 0x80) run += 1;
    else {
      all += run;
      if (run <= 2) lone += run;
      run = 0;
    }
  }
  return all ? lone / all : 0;
}

/** @type {Encoding[]} */
const ENCODINGS = [
  {
    label: "shift_jis",
    name: "Shift-JIS",
    likeness: (bytes) =>
      share(
        bytes,
        (lead) => within(lead, 0x81, 0x83) || within(lead, 0x88, 0x98),
        (byte) => within(byte, 0xa1, 0xdf),
      ).share,
  },
  { label: "euc-kr", name: "EUC-KR", likeness: (_bytes, text) => syllables(text) },
  { label: "gb18030", name: "GBK", likeness: chinese },
  {
    label: "big5",
    name: "Big5",
    likeness: (bytes) =>
      share(bytes, (lead) => within(lead, 0xa1, 0xa3) || within(lead, 0xa4, 0xc6)).share,
  },
  { ...LATIN, likeness: accents },
  {
    label: "windows-1251",
    name: "Windows-1251",
    likeness: (bytes, text) =>
      (text.match(RUSSIAN) || []).join("").length /
      (bytes.filter((byte) => byte >= 0x80).length || 1),
  },
];

/**
 * @param {Uint8Array} bytes
 * @param {string} label
 * @returns {string|null} the text, without a truncated last character
 */
function decoded(bytes, label) {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return null;
  }
}

/** @param {ArrayBuffer} buffer the beginning of a file @returns {FileText} */
export function textOf(buffer) {
  const bytes = new Uint8Array(buffer);
  const mark =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? "utf-16le"
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? "utf-16be"
        : "utf-8";
  const known = decoded(bytes, mark);
  if (known !== null && !known.includes("\0")) return { text: known, encoding: "" };
  if (bytes.includes(0)) {
    // Among text encodings, only UTF-16 has zero bytes.
    const wide = ["utf-16le", "utf-16be"]
      .map((label) => decoded(bytes, label))
      .find((text) => text !== null && !text.includes("\0") && /[,;\t|\n]/.test(text));
    if (wide) return { text: wide, encoding: "UTF-16" };
  }
  const candidates = ENCODINGS.flatMap(({ label, name, likeness }) => {
    const text = decoded(bytes, label);
    return text === null ? [] : [{ text, encoding: name, likeness: likeness(bytes, text) }];
  });
  const best = candidates.reduce((one, other) => (other.likeness > one.likeness ? other : one), {
    text: "",
    encoding: "",
    likeness: PLAUSIBLE - Number.EPSILON,
  });
  const { text, encoding } = best.encoding
    ? best
    : { text: new TextDecoder(LATIN.label).decode(bytes), encoding: LATIN.name };
  return { text, encoding };
}
