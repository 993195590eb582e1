import{d as a}from"./chunk-JT63J7HP.js";import"./chunk-EONY2UYK.js";export{a as MessageList};
