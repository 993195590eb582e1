import{d as a}from"./chunk-CFVCISWJ.js";import"./chunk-XWMFO5PU.js";export{a as MessageList};
