import{d as a}from"./chunk-EC4I2Y4Q.js";import"./chunk-GXNCUSBR.js";export{a as MessageList};
