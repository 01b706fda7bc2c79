"""Run only the Kie.ai simulator: `python -m genlock.sandbox.kie`."""

import asyncio
import sys

from genlock.sandbox.kie.simulator import running_kie

PORT = 8081


async def main() -> None:
    async with running_kie(seed=None, port=PORT, files_port=PORT + 1) as kie:
        sys.stdout.write(
            f"GENLOCK_KIE_API_URL={kie.url}\nGENLOCK_KIE_UPLOAD_URL={kie.url}\nGENLOCK_KIE_API_KEY={kie.key}\n"
            f"# results at {kie.files_url}; faults at {kie.url}/_control; stop with Ctrl-C\n"
        )
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
