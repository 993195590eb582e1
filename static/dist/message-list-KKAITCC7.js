import{d as a}from"./chunk-NSG4GNKP.js";import"./chunk-LPGTYKO6.js";export{a as MessageList};
