import{d as a}from"./chunk-3ZEB73B6.js";import"./chunk-3GAB4HZF.js";export{a as MessageList};
