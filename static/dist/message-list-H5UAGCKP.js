import{d as a}from"./chunk-2SJQOPR4.js";import"./chunk-K5VGOQW7.js";export{a as MessageList};
