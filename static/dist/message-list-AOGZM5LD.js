import{d as a}from"./chunk-5IWKONL2.js";import"./chunk-M6BQOLUT.js";export{a as MessageList};
