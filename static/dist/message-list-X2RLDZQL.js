import{d as a}from"./chunk-I2VV524V.js";import"./chunk-IPN24RVJ.js";import"./chunk-BFUDS75X.js";export{a as MessageList};
