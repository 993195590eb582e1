export { LitElement, html, nothing, render, svg } from "lit";
export type { PropertyDeclarations, PropertyValues, ReactiveController, ReactiveControllerHost, TemplateResult } from "lit";
export { live } from "lit/directives/live.js";
export { repeat } from "lit/directives/repeat.js";
