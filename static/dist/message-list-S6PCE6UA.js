import{d as a}from"./chunk-PP646FHF.js";import"./chunk-JG22WXYQ.js";export{a as MessageList};
