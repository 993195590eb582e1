import{d as a}from"./chunk-WJAWABCU.js";import"./chunk-6YBUZIYA.js";export{a as MessageList};
