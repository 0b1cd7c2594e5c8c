import { render } from "preact";
import "@xterm/xterm/css/xterm.css";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { arrive } from "./session";
import "./theme";

const place = document.getElementById("console");
if (place) render(<App />, place);
void arrive();
