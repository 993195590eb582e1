import{d as a}from"./chunk-3XSUCTVA.js";import"./chunk-GPRZATUJ.js";export{a as MessageList};
