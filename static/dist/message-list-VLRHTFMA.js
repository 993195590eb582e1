import{d as a}from"./chunk-ZG7ML3M2.js";import"./chunk-DVHXRVBL.js";export{a as MessageList};
