import{d as a}from"./chunk-WRIUYHFC.js";import"./chunk-LG7AIV5Q.js";export{a as MessageList};
