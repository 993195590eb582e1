import{d as a}from"./chunk-PXXUQ46Y.js";import"./chunk-RBG5IKUK.js";export{a as MessageList};
