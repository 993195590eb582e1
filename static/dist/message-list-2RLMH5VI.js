import{d as a}from"./chunk-2QQABC45.js";import"./chunk-PLFGMQXM.js";export{a as MessageList};
