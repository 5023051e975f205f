// @ts-check
// The page of a run that was saved: the studio's panels, with the messages that they would have got.

import "./bins.js";
import "./links.js";
import "./path.js";
import "./waterfall.js";
import "./events.js";
import "./curves.js";
import "./overview.js";
import "./plain.js";
