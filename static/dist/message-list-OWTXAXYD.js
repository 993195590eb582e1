import{d as a}from"./chunk-DTZFD463.js";import"./chunk-CJ7BDNLD.js";export{a as MessageList};
