import{d as a}from"./chunk-3ZQERT4D.js";import"./chunk-ZNK4HDRB.js";export{a as MessageList};
