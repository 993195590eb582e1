import{d as a}from"./chunk-GK4ZL4G5.js";import"./chunk-ZNK4HDRB.js";export{a as MessageList};
