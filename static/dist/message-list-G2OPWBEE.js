import{d as a}from"./chunk-TNCCRMVQ.js";import"./chunk-FZVIJJJT.js";export{a as MessageList};
