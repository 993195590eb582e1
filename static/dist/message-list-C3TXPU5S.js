import{d as a}from"./chunk-PIXVWOFZ.js";import"./chunk-YWBXZFA3.js";export{a as MessageList};
