import{d as a}from"./chunk-YTVK5HVO.js";import"./chunk-JZEIQGHC.js";export{a as MessageList};
