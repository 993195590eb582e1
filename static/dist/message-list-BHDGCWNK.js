import{d as a}from"./chunk-ICJ2HU65.js";import"./chunk-AM3XIHLP.js";export{a as MessageList};
