import{d as a}from"./chunk-UY5A2LAX.js";import"./chunk-KWRIH4ZQ.js";export{a as MessageList};
