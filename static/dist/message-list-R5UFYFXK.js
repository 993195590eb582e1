import{d as a}from"./chunk-7HDHRVOY.js";import"./chunk-YECJRNYB.js";export{a as MessageList};
