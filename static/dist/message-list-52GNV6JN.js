import{d as a}from"./chunk-6S7ROIUF.js";import"./chunk-UQECOZN5.js";export{a as MessageList};
