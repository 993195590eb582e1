import{d as a}from"./chunk-DER75UTH.js";import"./chunk-QKPH2DAL.js";export{a as MessageList};
