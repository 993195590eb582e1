import{d as a}from"./chunk-ZUYOQJR4.js";import"./chunk-NW6CHUVP.js";export{a as MessageList};
