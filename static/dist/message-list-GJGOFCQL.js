import{d as a}from"./chunk-M5CJUQBO.js";import"./chunk-GYTSR3UO.js";export{a as MessageList};
