// What stands in the place of parts that need a sandbox that runs.

import type { ComponentChildren } from "preact";
import type { Session } from "../api/forms";
import { change } from "../api/sandboxes";
import { attempt } from "../ui/notices";
import { Empty } from "../ui/states";

export function Awake({ session, again, children }: { session: Session; again: () => void; children: ComponentChildren }) {
  const wake = session.status === "stopped" ? "start" : session.status === "paused" ? "resume" : undefined;
  if (session.status === "running") return <>{children}</>;
  return (
    <Empty title={`The sandbox is ${session.status}`}>
      {wake
        ? <button type="button" class="primary" onClick={() => void attempt(() => change(session.session_id, wake)).then(again)}>{wake === "start" ? "Start it" : "Let it go on"}</button>
        : <p>Nothing can be done in it any more.</p>}
    </Empty>
  );
}
