import{d as a}from"./chunk-WNS6HAUS.js";import"./chunk-JMO6BVVX.js";export{a as MessageList};
