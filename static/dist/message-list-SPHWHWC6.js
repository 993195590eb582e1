import{d as a}from"./chunk-Y7RVC3IO.js";import"./chunk-Y7R7N2XZ.js";export{a as MessageList};
