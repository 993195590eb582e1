/**
 * Types for the parts of markdown-it that these rules use; the library ships none.
 *
 * @typedef {object} Token
 * @property {string} type
 * @property {string} tag
 * @property {string} content
 * @property {string} info of a fence
 * @property {number} level
 * @property {number} nesting
 * @property {boolean} block
 * @property {[number, number]|null} map its lines
 * @property {{isDone?: boolean}|null} meta
 * @property {Token[]|null} children
 * @property {[string, string][]|null} attrs
 * @property {(name: string) => string|null} attrGet
 * @property {(name: string, value: string) => void} attrSet
 *
 * @typedef {object} Renderer
 * @property {(tokens: Token[], options: object, env: object) => string} renderInlineAsText
 * @property {(tokens: Token[], at: number, options: object) => string} renderToken
 * @property {Record<string, RenderRule>} rules
 *
 * @typedef {(tokens: Token[], at: number, options: object, env: object, renderer: Renderer) =>
 *   string} RenderRule
 *
 * @typedef {object} InlineState
 * @property {string} src
 * @property {number} pos
 * @property {number} posMax
 * @property {(type: string, tag: string, nesting: number) => Token} push
 *
 * @typedef {object} BlockState
 * @property {string} src
 * @property {number} line
 * @property {number} blkIndent
 * @property {number[]} sCount
 * @property {number[]} bMarks
 * @property {number[]} tShift
 * @property {number[]} eMarks
 * @property {(type: string, tag: string, nesting: number) => Token} push
 *
 * @typedef {object} CoreState
 * @property {Token[]} tokens
 * @property {new (type: string, tag: string, nesting: number) => Token} Token
 */

export {};
