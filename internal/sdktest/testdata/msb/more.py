# What else the client of microsandbox 0.1.8 can do.
import asyncio
import aiohttp
from microsandbox import NodeSandbox, PythonSandbox

async def main():
    async with PythonSandbox.create(namespace="team", name="one") as sandbox:
        metrics = await sandbox.metrics.all()
        print(metrics["namespace"], metrics["name"], metrics["running"], await sandbox.metrics.is_running())
        execution = await sandbox.run("1/0")
        print(execution.has_error(), (await execution.error()).splitlines()[-1])
        await sandbox.command.run("sh", ["-c", "echo kept > f"])
        print(await (await sandbox.run("print(open('f').read())")).output())
    sandbox = NodeSandbox(namespace="elsewhere")
    sandbox._session = aiohttp.ClientSession()
    try:
        await sandbox.start()
    except RuntimeError as e:
        print(e)
    finally:
        await sandbox._session.close()

asyncio.run(main())
