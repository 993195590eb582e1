import{d as a}from"./chunk-IQBFZKE5.js";import"./chunk-GXPCFDTV.js";export{a as MessageList};
