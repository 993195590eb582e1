import{d as a}from"./chunk-BEFJZNIA.js";import"./chunk-LPISVYS6.js";export{a as MessageList};
