// What can be done to a sandbox as a whole.

import type { Session } from "../api/forms";
import { change, destroy, type Change } from "../api/sandboxes";
import { go } from "../route";
import { may } from "../session";
import { confirm } from "../ui/dialog";
import { attempt } from "../ui/notices";

const done: Record<Change, string> = {
  start: "It is running", stop: "It is stopped; its files are kept", pause: "It is paused", resume: "It goes on", renew: "Its end was moved",
  fork: "There is a copy", snapshot: "Its files are saved",
};

function possible(s: Session): Change[] {
  switch (s.status) {
    case "running":
      return ["stop", "pause", "renew", "fork", "snapshot"];
    case "paused":
      return ["resume", "stop"];
    case "stopped":
      return ["start"];
    default:
      return [];
  }
}

export function Actions({ session, again, small }: { session: Session; again: () => void; small?: boolean }) {
  if (!may("sandbox:write")) return null;
  const act = async (what: Change) => {
    const after = await attempt(() => change(session.session_id, what), done[what]);
    again();
    if (after && what === "fork" && !small) go("sandboxes", after.session_id);
  };
  const ask = () => confirm({
    title: "Destroy this sandbox?", verb: "Destroy",
    text: `What runs in ${session.session_id} ends, and its files are gone.`,
    act: async () => {
      await destroy(session.session_id);
      again();
    },
  });
  const verbs = possible(session).filter((v) => !small || v !== "snapshot");
  return (
    <span class="buttons" onClick={(e) => e.stopPropagation()}>
      {verbs.map((v) => (
        <button key={v} type="button" class={small ? "small" : undefined} onClick={() => void act(v)} aria-label={small ? `${v} ${session.session_id}` : undefined}>
          {v[0]?.toUpperCase() + v.slice(1)}
        </button>
      ))}
      {session.status !== "ended" && (
        <button type="button" class={small ? "small danger" : "danger"} onClick={ask} aria-label={small ? `destroy ${session.session_id}` : undefined}>Destroy</button>
      )}
    </span>
  );
}
