import{d as a}from"./chunk-O7C25QF6.js";import"./chunk-P4MBTR44.js";export{a as MessageList};
