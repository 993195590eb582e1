import{d as a}from"./chunk-GW4UTI4J.js";import"./chunk-Y7R7N2XZ.js";export{a as MessageList};
