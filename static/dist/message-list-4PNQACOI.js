import{d as a}from"./chunk-2WA7CEVW.js";import"./chunk-HWE5NSCW.js";export{a as MessageList};
