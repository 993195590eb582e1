import{d as a}from"./chunk-NJWCHX4E.js";import"./chunk-IE72LRC4.js";export{a as MessageList};
