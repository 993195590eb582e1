import{d as a}from"./chunk-6SURF7C6.js";import"./chunk-YOS3LMUU.js";export{a as MessageList};
