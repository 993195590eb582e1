/** The page of an agent: examples as tabs, each with a button that copies it. */

import "./code-examples.js";
