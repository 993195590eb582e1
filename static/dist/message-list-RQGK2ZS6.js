import{d as a}from"./chunk-5RQC5OX6.js";import"./chunk-K5VGOQW7.js";export{a as MessageList};
