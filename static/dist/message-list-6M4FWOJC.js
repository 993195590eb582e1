import{d as a}from"./chunk-OQOQJXIS.js";import"./chunk-3CYG6VU6.js";export{a as MessageList};
