import { lazy } from "../ui/lazy";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

const Terminal = lazy<{ id: string }>("Fetching the terminal", async () => (await import("./terminal")).default);

export function TerminalTab({ session, again }: TabProps) {
  return <Awake session={session} again={again}><Terminal id={session.session_id} /></Awake>;
}
