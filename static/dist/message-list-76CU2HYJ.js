import{d as a}from"./chunk-LFBWWEB3.js";import"./chunk-VGMUS3G4.js";export{a as MessageList};
