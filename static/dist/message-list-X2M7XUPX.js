import{d as a}from"./chunk-BOBEAKR7.js";import"./chunk-P75Y3MQL.js";export{a as MessageList};
