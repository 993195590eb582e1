import{d as a}from"./chunk-ETFH2J6N.js";import"./chunk-GXPCFDTV.js";export{a as MessageList};
