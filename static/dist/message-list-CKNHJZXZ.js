import{d as a}from"./chunk-GIXZGSDH.js";import"./chunk-OE75MUTM.js";export{a as MessageList};
