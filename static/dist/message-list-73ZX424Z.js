import{d as a}from"./chunk-NSIF3P23.js";import"./chunk-RAOURMR3.js";export{a as MessageList};
