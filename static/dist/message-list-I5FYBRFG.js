import{d as a}from"./chunk-2SIM5EQQ.js";import"./chunk-PPTZAWXC.js";export{a as MessageList};
