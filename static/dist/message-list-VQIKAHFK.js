import{d as a}from"./chunk-KIJF26I5.js";import"./chunk-XXSKTG4N.js";export{a as MessageList};
