import{d as a}from"./chunk-LWXLV7PY.js";import"./chunk-RXKXRVUK.js";export{a as MessageList};
