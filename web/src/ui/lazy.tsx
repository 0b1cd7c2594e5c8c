// Parts that are large and not always needed are fetched when they are shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, Waiting } from "./states";

export function lazy<P extends object>(what: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, ready] = useState(loaded !== undefined);
    const [problem, setProblem] = useState<unknown>();
    useEffect(() => {
      if (loaded) return;
      load().then((part) => {
        loaded = part;
        ready(true);
      }, setProblem);
    }, []);
    if (problem !== undefined) return <Failure problem={problem} again={() => location.reload()} />;
    if (!loaded) return <Waiting what={what} />;
    const Part = loaded;
    return <Part {...props} />;
  };
}
