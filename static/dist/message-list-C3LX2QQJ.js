import{d as a}from"./chunk-P4J5BQWW.js";import"./chunk-C5SL5II4.js";export{a as MessageList};
