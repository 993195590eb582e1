import{d as a}from"./chunk-ZKGKOUKB.js";import"./chunk-LPISVYS6.js";export{a as MessageList};
