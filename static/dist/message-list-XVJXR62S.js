import{d as a}from"./chunk-UB4DNABM.js";import"./chunk-ONBECWU6.js";export{a as MessageList};
