import{d as a}from"./chunk-UBKNOQ2R.js";import"./chunk-73GLENP4.js";export{a as MessageList};
